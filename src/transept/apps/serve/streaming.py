"""A translation that is sent while it is being written, as server-sent events.

    event: part
    data: {"text": "Guten ", "tail": "Morgen"}

The `text` fields of all parts, joined together, are the translation, so a client can print them as
they come. `tail` is what would follow them at the moment. The next part may change it. The event
`done` holds the whole translation. The event `error` ends a stream that could not be finished.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from transept.api.texts import Draft
from transept.apps.serve import messages as m
from transept.apps.serve.answers import FAILED
from transept.apps.serve.backend import Backend
from transept.apps.serve.jobs import Stream
from transept.errors import TranseptError


@dataclass(frozen=True)
class Streaming:
    """The handler of the path that streams."""

    backend: Backend

    async def stream(self, request: Request, message: m.StreamRequest) -> Response:
        """Translate a text, and send the translation token by token (server-sent events)."""
        model = self.backend.model_meant(message.source, message.target)
        (text,) = await self.backend.texts([message.q], message.format, model.source)
        operation = self.backend.translate(model, [text], message.beam_size)
        self.backend.check_beam(1, operation.beam_size)
        drafts = self.backend.stream(operation.drafts(text))
        events = self._events(drafts, len(text.sentences))
        return EventResponse(drafts, events, self.backend.settings.deadline)

    async def _events(self, drafts: Stream[Draft], n_sentences: int) -> AsyncIterator[bytes]:
        sent, tail, whole = 0, "", ""
        try:
            async for draft in drafts:
                whole, before = draft.text, (sent, tail)
                # Text that was sent cannot be taken back, even if a later draft differs in it.
                fresh, sent = whole[sent : draft.stable], max(sent, draft.stable)
                tail = whole[sent:]
                if (sent, tail) != before:
                    yield _event("part", m.StreamedPart(fresh, tail))
            yield _event("done", m.Whole(whole, n_sentences))
        except TimeoutError:
            yield _event("error", m.ErrorAnswer(self.backend.too_slow))
        except TranseptError as error:
            yield _event("error", m.ErrorAnswer(str(error)))
        except Exception:
            yield _event("error", m.ErrorAnswer(FAILED))
            raise


class EventResponse(StreamingResponse):
    """An answer of events. Its stream ends if the client disconnects, or at the deadline."""

    def __init__(self, stream: Stream[Any], events: AsyncIterator[bytes], deadline: float) -> None:
        self._stream, self._deadline = stream, deadline
        # A proxy that buffers answers would send the whole translation at once.
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events.

        The stream is cancelled here and not in the generator of the events: if the client is gone
        already, that generator never begins, and so would never clean up.
        """
        loop = asyncio.get_running_loop()
        due = loop.call_later(self._deadline, self._stream.end, TimeoutError())
        try:
            await super().__call__(scope, receive, send)
        finally:
            due.cancel()
            self._stream.cancel()


def _event(name: str, message: msgspec.Struct) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(message))
