"""A translation sent while it is written, as server-sent events.

    event: part
    data: {"text": "Guten ", "tail": "Morgen"}

The `text`s of all parts, one after another, are the translation: who prints them as they come has
it. `tail` stands after them for now, and the next part may say otherwise. `done` holds the whole
once more; `error` ends a stream that could not be finished.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from transept.api.results import Draft
from transept.errors import TranseptError
from transept.serving import messages as m
from transept.serving.jobs import Stream
from transept.serving.work import Work

FAILED = "the server failed; its log says where"


@dataclass(frozen=True)
class Streaming:
    """The path that streams."""

    work: Work

    async def stream(self, request: Request, asked: m.StreamRequest) -> Response:
        """Translate a text, and send the translation token by token (server-sent events)."""
        model = self.work.model_meant(asked.source, asked.target)
        (text,) = self.work.texts([asked.q], asked.format, model.source)
        ask = self.work.translate(model, [text], asked.beam_size)
        self.work.check_beam(1, ask.beam_size)
        drafts = self.work.stream(ask.drafts(text))
        events = self._events(drafts, len(text.sentences))
        return Watched(drafts, events, self.work.settings.deadline)

    async def _events(self, drafts: Stream[Draft], n_sentences: int) -> AsyncIterator[bytes]:
        sent, tail, whole = 0, "", ""
        try:
            async for draft in drafts:
                whole, before = draft.text, (sent, tail)
                # What is sent cannot be taken back, whatever a later draft thinks of it.
                fresh, sent = whole[sent : draft.stable], max(sent, draft.stable)
                tail = whole[sent:]
                if (sent, tail) != before:
                    yield _event("part", m.Part(fresh, tail))
            yield _event("done", m.Whole(whole, n_sentences))
        except TimeoutError:
            yield _event("error", m.Fault(self.work.too_slow))
        except TranseptError as error:
            yield _event("error", m.Fault(str(error)))
        except Exception:
            yield _event("error", m.Fault(FAILED))
            raise


class Watched(StreamingResponse):
    """An answer of events, whose stream goes on no longer than it is read, nor than it may."""

    def __init__(self, stream: Stream[Any], events: AsyncIterator[bytes], deadline: float) -> None:
        self._stream, self._deadline = stream, deadline
        # A proxy that gathers answers would take away what streaming is for.
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(events, headers=headers, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes; here and not in the events, which never begin if nobody is there."""
        loop = asyncio.get_running_loop()
        due = loop.call_later(self._deadline, self._stream.end, TimeoutError())
        try:
            await super().__call__(scope, receive, send)
        finally:
            due.cancel()
            self._stream.give_up()


def _event(name: str, message: msgspec.Struct) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(message))
