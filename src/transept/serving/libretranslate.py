"""The paths of LibreTranslate's API."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from transept.serving import messages as m
from transept.serving.answers import answer
from transept.serving.bodies import Refusal
from transept.serving.languages import Guess, guess, name_of
from transept.serving.texts import Outputs, Text
from transept.serving.work import Work


@dataclass(frozen=True)
class LibreTranslate:
    """Answers in the shapes that its clients know."""

    work: Work
    key_required: bool

    async def translate(self, request: Request, asked: m.TranslateRequest) -> Response:
        """Translate a text, or a list of texts."""
        queries = [asked.q] if isinstance(asked.q, str) else asked.q
        self.work.check_length(queries)
        source, guessed = await self._source(queries, asked)
        if source == asked.target:
            best: list[str] = queries
            others: list[list[str]] = [[] for _ in queries]
        else:
            texts = self.work.texts(queries, asked.format, source)
            ask = self.work.translate(self.work.model(source, asked.target), texts)
            n_best = 1 + min(asked.alternatives, ask.beam_size - 1)
            outputs = await self.work.translations(
                request, ask, [sentence for text in texts for sentence in text.sentences]
            )
            best, others = _best_and_others(texts, outputs, n_best)
        is_list = not isinstance(asked.q, str)
        reply = m.TranslateAnswer(best if is_list else best[0])
        if asked.alternatives:
            reply.alternatives = others if is_list else others[0]
        if guessed is not None:
            found = m.Detection(guessed.language, guessed.confidence)
            reply.detected_language = [found] * len(queries) if is_list else found
        return answer(reply)

    async def detect(self, request: Request, asked: m.DetectRequest) -> Response:
        """Guess the language of a text, among those served."""
        queries = [asked.q] if isinstance(asked.q, str) else asked.q
        self.work.check_length(queries)
        guesses = await run_in_threadpool(guess, "\n".join(queries), self.work.models.codes)
        return answer([m.Detection(one.language, one.confidence) for one in guesses])

    async def languages(self, request: Request) -> Response:
        """List the languages that are read or written, and what each can be translated to."""
        models = self.work.models
        return answer(
            [m.Language(code, name_of(code), models.targets(code)) for code in models.codes]
        )

    async def frontend_settings(self, request: Request) -> Response:
        """Tell a web page what it may offer."""
        first = self.work.models.first
        codes = (first.source, first.target) if first else ()
        named = [m.Named(code, name_of(code)) for code in codes]
        return answer(
            m.FrontendSettings(
                char_limit=self.work.settings.char_limit,
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
        self, queries: Sequence[str], asked: m.TranslateRequest
    ) -> tuple[str, Guess | None]:
        """The language of the texts, and how it was guessed if it was."""
        models = self.work.models
        for code in (asked.target, asked.source):
            if code not in models.codes and not (code == "auto" and code == asked.source):
                raise Refusal(400, f"{code} is not supported")
        if asked.source != "auto":
            return asked.source, None
        possible = [
            code for code in models.codes if code == asked.target or models.get(code, asked.target)
        ]
        (best, *_) = await run_in_threadpool(guess, "\n".join(queries), possible)
        if not best.confidence:
            # Nothing was learnt from the text: then it is what can be translated.
            model = next((one for one in models if one.target == asked.target), None)
            best = Guess(model.source if model else asked.target, 0.0)
        return best.language, best


def _best_and_others(
    texts: Sequence[Text], outputs: Sequence[Outputs], n_best: int
) -> tuple[list[str], list[list[str]]]:
    """Of each text the best translation, and other ones that read differently."""
    each = iter(outputs)
    best, others = [], []
    for text in texts:
        found = text.put_together([next(each) for _ in text.sentences], n_best)
        first, *rest = dict.fromkeys(one.text for one in found.outputs)
        best.append(first)
        others.append(rest)
    return best, others
