"""The paths that show more than a translation: n-best, scores, attention, trees."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from transept.api.parses import ParseConfig
from transept.apps.serve import messages as m
from transept.apps.serve.answers import answer
from transept.apps.serve.backend import Backend
from transept.apps.serve.bodies import Refusal
from transept.apps.serve.operations import AttendOperation, ParseTrees, ScoreOperation
from transept.apps.serve.trees import nested


@dataclass(frozen=True)
class Analysis:
    """Handlers of paths that only transept has."""

    backend: Backend

    async def n_best(self, request: Request, message: m.NBestRequest) -> Response:
        """Search for the best translations of a text, with their scores."""
        model = self.backend.model_meant(message.source, message.target)
        usual = self.backend.settings.beam_size
        beam_size = message.beam_size or max(usual, message.n_best)
        self.backend.check_beam(message.n_best, beam_size)
        (text,) = await self.backend.texts([message.q], message.format, model.source)
        operation = self.backend.translate(model, [text], beam_size, message.length_penalty)
        outputs = await self.backend.translations(request, operation, text.sentences)
        found = text.put_together(outputs, message.n_best)
        return answer(
            m.NBestAnswer(
                model.source,
                model.target,
                [
                    m.RankedTranslation(one.text, one.score, one.log_probability, one.finished)
                    for one in found.outputs
                ],
            )
        )

    async def score(self, request: Request, message: m.ScoreRequest) -> Response:
        """Say how probable the model finds given translations."""
        model = self.backend.model_meant(message.source, message.target)
        sources = [message.q] if isinstance(message.q, str) else message.q
        given = message.translation
        targets = [given] if isinstance(given, str) else given
        if len(sources) != len(targets):
            raise Refusal(400, "Invalid request: each q needs one translation")
        self.backend.check_length([*sources, *targets])
        self.backend.check_count(len(sources))
        pairs = list(zip(sources, targets, strict=True))
        scores = await self.backend.results(request, ScoreOperation(model), pairs)
        return answer(
            m.ScoreAnswer(
                [
                    m.ScoredPair(
                        one.log_probability, list(one.tokens), list(one.token_log_probabilities)
                    )
                    for one in scores
                ]
            )
        )

    async def attention(self, request: Request, message: m.AttentionRequest) -> Response:
        """Show the attention weights for a sentence and its translation."""
        model = self.backend.model_meant(message.source, message.target)
        self.backend.check_length([message.q, message.translation or ""])
        operation = AttendOperation(
            model,
            kinds=message.kinds,
            layers=tuple(message.layers or ()),
            heads=tuple(message.heads or ()),
            tokens=message.tokens,
            limit=self.backend.settings.weight_limit,
        )
        (seen,) = await self.backend.results(request, operation, [(message.q, message.translation)])
        return answer(seen)

    async def parse(self, request: Request, message: m.ParseRequest) -> Response:
        """Parse a sentence, or a list of sentences, into constituency trees."""
        model = self.backend.parser()
        usual = min(ParseConfig().beam_size, self.backend.settings.beam_limit)
        beam_size = message.beam_size or max(usual, message.n_best)
        self.backend.check_beam(message.n_best, beam_size)
        sentences = [message.q] if isinstance(message.q, str) else message.q
        self.backend.check_length(sentences)
        self.backend.check_count(len(sentences))
        operation = ParseTrees(model, beam_size, message.n_best)
        parses = await self.backend.results(request, operation, sentences)
        return answer(
            m.ParseAnswer(
                [
                    m.Parsed(
                        list(one.words),
                        [
                            m.ParsedTree(
                                str(output.tree),
                                nested(output.tree),
                                output.score,
                                output.log_probability,
                                output.confidence,
                            )
                            for output in one.outputs
                        ],
                    )
                    for one in parses
                ]
            )
        )
