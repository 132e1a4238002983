"""Texts that come while others are being translated: each is one sentence, and is not split."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from transept.api.results import NOTHING, Output, Sentence
from transept.api.units import Unit

TextFeed = Callable[[int], Sequence[str]]
"""Gives at most so many texts; none if none waits now."""


class FedText(NamedTuple):
    """A text of a feed, and its units: one with tokens at most, and white space around it."""

    text: str
    units: list[Unit]

    @property
    def sentence(self) -> Unit:
        """The unit with tokens; an empty one if there is none."""
        return next((unit for unit in self.units if unit.ids), Unit("", "", []))

    def parts(self, outputs: tuple[Output, ...]) -> list[Sentence]:
        """The parts of its translation, from the outputs of its sentence."""
        return [
            Sentence(unit.text, unit.space, outputs if unit.ids else (NOTHING,))
            for unit in self.units
        ]


class FedTexts:
    """The texts of a feed that are being translated, by their numbers."""

    def __init__(
        self, feed: TextFeed, take_apart: Callable[[Sequence[str]], list[list[Unit]]]
    ) -> None:
        self._feed, self._take_apart = feed, take_apart
        self._running: dict[int, FedText] = {}
        self._n_taken = 0

    def take(self, n: int) -> list[Unit]:
        """Take at most n texts of the feed, and give the sentence of each."""
        if not (texts := self._feed(n)):  # a quick return: it is called at every token
            return []
        taken = [*map(FedText, texts, self._take_apart(texts))]
        self._running.update(enumerate(taken, self._n_taken))
        self._n_taken += len(taken)
        return [one.sentence for one in taken]

    def finish(self, number: int) -> FedText:
        """The text with this number, which is done."""
        return self._running.pop(number)
