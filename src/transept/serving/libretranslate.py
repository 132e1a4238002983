"""The paths of LibreTranslate's API."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from transept.serving import messages as m
from transept.serving.answers import answer
from transept.serving.backend import Backend
from transept.serving.bodies import Refusal
from transept.serving.languages import Guess, guess, name_of
from transept.serving.texts import Outputs, Text


@dataclass(frozen=True)
class LibreTranslate:
    """Handlers whose answers have the form that clients of LibreTranslate expect."""

    backend: Backend
    key_required: bool

    async def translate(self, request: Request, message: m.TranslateRequest) -> Response:
        """Translate a text, or a list of texts."""
        queries = [message.q] if isinstance(message.q, str) else message.q
        self.backend.check_length(queries)
        source, guessed = await self._source(queries, message)
        if source == message.target:
            best: list[str] = queries
            others: list[list[str]] = [[] for _ in queries]
        else:
            texts = self.backend.texts(queries, message.format, source)
            operation = self.backend.translate(self.backend.model(source, message.target), texts)
            n_best = 1 + min(message.alternatives, operation.beam_size - 1)
            outputs = await self.backend.translations(
                request, operation, [sentence for text in texts for sentence in text.sentences]
            )
            best, others = _best_and_others(texts, outputs, n_best)
        is_list = not isinstance(message.q, str)
        reply = m.TranslateAnswer(best if is_list else best[0])
        if message.alternatives:
            reply.alternatives = others if is_list else others[0]
        if guessed is not None:
            found = m.Detection(guessed.language, guessed.confidence)
            reply.detected_language = [found] * len(queries) if is_list else found
        return answer(reply)

    async def detect(self, request: Request, message: m.DetectRequest) -> Response:
        """Guess the language of a text, among the languages that are served."""
        queries = [message.q] if isinstance(message.q, str) else message.q
        self.backend.check_length(queries)
        guesses = await run_in_threadpool(guess, "\n".join(queries), self.backend.models.codes)
        return answer([m.Detection(one.language, one.confidence) for one in guesses])

    async def languages(self, request: Request) -> Response:
        """List the languages, and to which languages each can be translated."""
        models = self.backend.models
        return answer(
            [m.Language(code, name_of(code), models.targets(code)) for code in models.codes]
        )

    async def frontend_settings(self, request: Request) -> Response:
        """Tell a web page which features the server has."""
        first = self.backend.models.first
        codes = (first.source, first.target) if first else ()
        named = [m.Named(code, name_of(code)) for code in codes]
        return answer(
            m.FrontendSettings(
                char_limit=self.backend.settings.char_limit,
                frontend_timeout=500,
                api_keys=self.key_required,
                key_required=self.key_required,
                suggestions=False,
                files_translation=False,
                supported_files_format=[],
                language=m.Pair(*named) if named else None,
            )
        )

    async def _source(
        self, queries: Sequence[str], message: m.TranslateRequest
    ) -> tuple[str, Guess | None]:
        """The language of the texts; and the guess, if it was guessed."""
        models = self.backend.models
        for code in (message.target, message.source):
            if code not in models.codes and not (code == "auto" and code == message.source):
                raise Refusal(400, f"{code} is not supported")
        if message.source != "auto":
            return message.source, None
        possible = [
            code
            for code in models.codes
            if code == message.target or models.get(code, message.target)
        ]
        (best, *_) = await run_in_threadpool(guess, "\n".join(queries), possible)
        if not best.confidence:
            # The text tells nothing, so take a language that can be translated.
            model = next((one for one in models if one.target == message.target), None)
            best = Guess(model.source if model else message.target, 0.0)
        return best.language, best


def _best_and_others(
    texts: Sequence[Text], outputs: Sequence[Outputs], n_best: int
) -> tuple[list[str], list[list[str]]]:
    """The best translation of each text, and further ones whose text differs."""
    each = iter(outputs)
    best, others = [], []
    for text in texts:
        found = text.put_together([next(each) for _ in text.sentences], n_best)
        first, *rest = dict.fromkeys(one.text for one in found.outputs)
        best.append(first)
        others.append(rest)
    return best, others
