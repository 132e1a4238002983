"""The paths of LibreTranslate's API."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from transept.apps.serve import messages as m
from transept.apps.serve.answers import answer
from transept.apps.serve.backend import Backend
from transept.apps.serve.bodies import Refusal
from transept.apps.serve.languages import Guess, guess, guess_each, name_of
from transept.apps.serve.markup import text_of
from transept.apps.serve.texts import Outputs, Text


@dataclass(frozen=True)
class LibreTranslate:
    """Handlers whose answers have the form that clients of LibreTranslate expect."""

    backend: Backend
    key_required: bool

    async def translate(self, request: Request, message: m.TranslateRequest) -> Response:
        """Translate a text, or a list of texts."""
        queries = [message.q] if isinstance(message.q, str) else message.q
        self.backend.check_length(queries)
        guesses = await self._guesses(queries, message)
        sources = [one.language for one in guesses] or [message.source] * len(queries)
        # What is in the target's language already stays as it is.
        best, others = [*queries], [list[str]() for _ in queries]
        for source in dict.fromkeys(sources):
            if source != message.target:
                chosen = [i for i, one in enumerate(sources) if one == source]
                given = [queries[i] for i in chosen]
                found = await self._translations(request, given, source, message)
                for i, (first, *rest) in zip(chosen, found, strict=True):
                    best[i], others[i] = first, rest
        is_list = not isinstance(message.q, str)
        reply = m.TranslateAnswer(best if is_list else best[0])
        if message.alternatives:
            reply.alternatives = others if is_list else others[0]
        if message.source == "auto":
            detected = [m.Detection(one.language, one.confidence) for one in guesses]
            reply.detected_language = detected if is_list else detected[0]
        return answer(reply)

    async def _translations(
        self, request: Request, queries: Sequence[str], source: str, message: m.TranslateRequest
    ) -> list[list[str]]:
        """The translations of each of these texts, which are in one language, best first."""
        texts = await self.backend.texts(queries, message.format, source)
        operation = self.backend.translate(self.backend.model(source, message.target), texts)
        n_best = 1 + min(message.alternatives, operation.beam_size - 1)
        outputs = await self.backend.translations(
            request, operation, [sentence for text in texts for sentence in text.sentences]
        )
        return _different(texts, outputs, n_best)

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
        named = [m.NamedLanguage(code, name_of(code)) for code in codes]
        return answer(
            m.FrontendSettings(
                char_limit=self.backend.settings.char_limit,
                frontend_timeout=500,
                api_keys=self.key_required,
                key_required=self.key_required,
                suggestions=False,
                files_translation=False,
                supported_files_format=[],
                language=m.LanguagePair(*named) if named else None,
            )
        )

    async def _guesses(self, queries: Sequence[str], message: m.TranslateRequest) -> list[Guess]:
        """The language of each text, if it is to be guessed; none if it was named."""
        models = self.backend.models
        targets, sources = models.codes, [*models.codes, "auto"]
        for code, known in ((message.target, targets), (message.source, sources)):
            if code not in known:
                raise Refusal(400, f"{code} is not supported")
        if message.source != "auto":
            return []
        possible = [
            code
            for code in models.codes
            if code == message.target or models.get(code, message.target)
        ]
        # A text that tells nothing is taken for one that can be translated.
        model = next((one for one in models if one.target == message.target), None)
        unknown = Guess(model.source if model else message.target, 0.0)
        read = text_of if message.format == "html" else str
        guesses = await run_in_threadpool(
            lambda: guess_each([read(query) for query in queries], possible)
        )
        return [one if one.confidence else unknown for one in guesses]


def _different(texts: Sequence[Text], outputs: Sequence[Outputs], n_best: int) -> list[list[str]]:
    """The translations of each text, best first, without those whose text does not differ."""
    each = iter(outputs)
    found = [text.put_together([next(each) for _ in text.sentences], n_best) for text in texts]
    return [[*dict.fromkeys(one.text for one in translation.outputs)] for translation in found]
