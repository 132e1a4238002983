"""The paths that show more than a translation: n-best, scores, attention, trees."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from transept.api.parse_config import ParseConfig
from transept.serving import messages as m
from transept.serving.answers import answer
from transept.serving.asks import Attend, ParseTrees, Score
from transept.serving.bodies import Refusal
from transept.serving.trees import nested
from transept.serving.work import Work


@dataclass(frozen=True)
class Analysis:
    """Answers of transept's own."""

    work: Work

    async def n_best(self, request: Request, asked: m.NBestRequest) -> Response:
        """Search for the best translations of a text, with their scores."""
        model = self.work.model_meant(asked.source, asked.target)
        usual = self.work.settings.beam_size
        beam_size = asked.beam_size or max(usual, asked.n_best)
        self.work.check_beam(asked.n_best, beam_size)
        (text,) = self.work.texts([asked.q], asked.format, model.source)
        ask = self.work.translate(model, [text], beam_size, asked.length_penalty)
        outputs = await self.work.translations(request, ask, text.sentences)
        found = text.put_together(outputs, asked.n_best)
        return answer(
            m.NBestAnswer(
                model.source,
                model.target,
                [
                    m.Hypothesis(one.text, one.score, one.log_probability, one.finished)
                    for one in found.outputs
                ],
            )
        )

    async def score(self, request: Request, asked: m.ScoreRequest) -> Response:
        """Say how probable the model holds given translations to be."""
        model = self.work.model_meant(asked.source, asked.target)
        sources = [asked.q] if isinstance(asked.q, str) else asked.q
        given = asked.translation
        targets = [given] if isinstance(given, str) else given
        if len(sources) != len(targets):
            raise Refusal(400, "Invalid request: each q needs one translation")
        self.work.check_length([*sources, *targets])
        self.work.check_count(len(sources))
        pairs = list(zip(sources, targets, strict=True))
        scores = await self.work.results(request, Score(model), pairs)
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

    async def attention(self, request: Request, asked: m.AttentionRequest) -> Response:
        """Show where the heads look in a sentence and its translation."""
        model = self.work.model_meant(asked.source, asked.target)
        self.work.check_length([asked.q, asked.translation or ""])
        ask = Attend(
            model,
            kinds=asked.kinds,
            layers=tuple(asked.layers or ()),
            heads=tuple(asked.heads or ()),
            tokens=asked.tokens,
            limit=self.work.settings.weight_limit,
        )
        (seen,) = await self.work.results(request, ask, [(asked.q, asked.translation)])
        return answer(seen)

    async def parse(self, request: Request, asked: m.ParseRequest) -> Response:
        """Parse a sentence, or a list of sentences, into constituency trees."""
        model = self.work.parser()
        usual = min(ParseConfig().beam_size, self.work.settings.beam_limit)
        beam_size = asked.beam_size or max(usual, asked.n_best)
        self.work.check_beam(asked.n_best, beam_size)
        sentences = [asked.q] if isinstance(asked.q, str) else asked.q
        self.work.check_length(sentences)
        self.work.check_count(len(sentences))
        ask = ParseTrees(model, beam_size, asked.n_best)
        parses = await self.work.results(request, ask, sentences)
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
