"""What comes back: outputs of sentences, and the texts that are put together from them."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from transept.text.sentences import CLOSERS, WIDE_STOPS

Alignment = tuple[tuple[int, int], ...]
"""Pairs (i, j): source word i and output word j belong together. Words stand between white space
and are counted from 0."""


@dataclass(frozen=True, slots=True)
class Output:
    """One text that the model gives."""

    text: str
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y). Of several sentences, the sum of theirs."""
    log_probability: float
    """log P(Y|X), natural. Of several sentences, the sum of theirs."""
    finished: bool = True
    """Whether it came to an end by itself, and not at the maximum length."""
    alignment: Alignment | None = None
    """Which words of the source it says, where that was asked for."""

    @property
    def pharaoh(self) -> str:
        """The alignment as `0-0 1-2 …`."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment or ())


NOTHING = Output("", 0.0, 0.0, alignment=())
"""What becomes of a text without a word: nothing, for certain."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A translation while it is being written."""

    text: str
    """What it would be if it ended here."""
    stable: int
    """So many of its first characters will not change any more."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a text that was translated by itself."""

    source: str
    space: str
    """The white space after it, which stays."""
    outputs: tuple[Output, ...]
    """Best first; of a sample, in the order drawn."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What the model makes of one text: its best output, and the others that were asked for.

    Example:
        >>> result = transept.load("en-de").translate("It rains.", n_best=3)
        >>> result.text == result.outputs[0].text
        True
        >>> result.outputs[0].score >= result.outputs[2].score
        True
    """

    source: str
    outputs: tuple[Output, ...]
    """Best first; of a sample, in the order drawn."""
    sentences: tuple[Sentence, ...]
    """The parts that the text was taken apart into; none where there was nothing to translate."""

    @property
    def text(self) -> str:
        """The best output."""
        return self.outputs[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.outputs[0].score

    @property
    def alignment(self) -> Alignment | None:
        """The best output's alignment, where that was asked for."""
        return self.outputs[0].alignment

    @classmethod
    def best(cls, source: str, sentences: Sequence[Sentence], n_best: int) -> "Translation":
        """The `n_best` combinations of the sentences' outputs with the highest sums of scores."""
        choices: list[tuple[float, tuple[Output, ...]]] = [(0.0, ())]
        for sentence in sentences:
            longer = (
                (score + output.score, (*before, output))
                for score, before in choices
                for output in sentence.outputs
            )
            choices = heapq.nlargest(n_best, longer, key=lambda choice: choice[0])
        outputs = map(partial(_together, sentences), (outputs for _, outputs in choices))
        return cls(source, tuple(outputs), tuple(sentences))

    @classmethod
    def drawn(cls, source: str, sentences: Sequence[Sentence], n: int) -> "Translation":
        """The sentences' first draws together, then their second: draws of the whole text."""
        choices = zip(*(sentence.outputs for sentence in sentences), strict=True)
        outputs = [_together(sentences, outputs) for outputs in choices] or [NOTHING] * n
        return cls(source, tuple(outputs), tuple(sentences))


@dataclass(frozen=True, slots=True)
class PairScore:
    """How probable a model holds a given translation to be."""

    source: str
    target: str
    log_probability: float
    """log P(Y|X), natural, the end symbol included."""
    tokens: tuple[str, ...]
    """The pieces of the target, and the end symbol."""
    token_log_probabilities: tuple[float, ...]
    """log P of each, given the source and the ones before it."""


def _together(sentences: Sequence[Sentence], outputs: Sequence[Output]) -> Output:
    """One output of a text from one of each of its sentences."""
    if len(outputs) == 1 and not sentences[0].space:
        return outputs[0]
    texts: list[str] = []
    links: list[tuple[int, int]] = []
    first_i = first_j = 0
    for number, (sentence, output) in enumerate(zip(sentences, outputs, strict=True), start=1):
        links += ((first_i + i, first_j + j) for i, j in output.alignment or ())
        joint = _joint(sentence, output, last=number == len(sentences))
        first_i += _words_ended(sentence.source, sentence.space)
        first_j += _words_ended(output.text, joint)
        texts += output.text, joint
    return Output(
        "".join(texts),
        sum((output.score for output in outputs), 0.0),
        sum((output.log_probability for output in outputs), 0.0),
        all(output.finished for output in outputs),
        None if any(output.alignment is None for output in outputs) else tuple(links),
    )


def _words_ended(text: str, space: str) -> int:
    """How many words of a text end before the next text: without a space the last goes on."""
    return len(text.split()) - bool(text and not space)


def _joint(sentence: Sentence, output: Output, last: bool) -> str:
    """What stands between an output and the next: what stood there in the source.

    Chinese and Japanese put nothing between sentences; other languages need a space there.
    """
    if sentence.space or last or not _ends_wide(sentence.source) or _ends_wide(output.text):
        return sentence.space
    return " "


def _ends_wide(text: str) -> bool:
    return text.rstrip(CLOSERS).endswith(tuple(WIDE_STOPS))
