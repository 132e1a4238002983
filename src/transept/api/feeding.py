"""Sentences that arrive while others are being translated."""

from collections.abc import Callable, Sequence
from itertools import count

from transept.api.config import ReadingConfig
from transept.api.texts import Draft, Outputs, Unit, Writer
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis, Partial
from transept.text.tokenizer import EOS_ID

UnitFeed = Callable[[int], Sequence[Unit]]
"""Returns at most this many sentences; empty if none is waiting."""
Drafts = Callable[[int, Callable[[], Draft]], None]
"""Called with the number of a sentence and a function that returns a draft of its translation."""
Finished = Sequence[tuple[int, list[Hypothesis]]]
OutputsOf = Callable[[list[Unit], list[list[Hypothesis]]], list[Outputs]]
"""Returns the outputs of sentences from their hypotheses."""


class RunningUnits:
    """The sentences of a feed that are being translated, by their number from 0."""

    def __init__(
        self, feed: UnitFeed, drafts: Drafts | None, writer: Writer, config: ReadingConfig
    ) -> None:
        self._feed, self._drafts, self._writer, self._config = feed, drafts, writer, config
        self._running: dict[int, Unit] = {}
        self._numbers = count()

    def inputs(self, n: int, input_of: Callable[[Unit], Input]) -> list[Input]:
        """The inputs of at most n sentences that have arrived.

        A text without tokens is decoded too, so that the numbers of the engine and the feed agree.
        Its output is ignored.
        """
        units = self._feed(n)
        self._running.update((next(self._numbers), unit) for unit in units)
        return [input_of(unit) if unit.ids else Input([EOS_ID], max_length=1) for unit in units]

    def partial(self, number: int, partial: Callable[[], Partial]) -> None:
        """Report a draft of a sentence without protected spans."""
        unit = self._running[number]
        if self._drafts is not None and unit.ids and not unit.masked.spans:
            draft = self._writer.draft
            self._drafts(number, lambda: draft("", partial(), unit, self._config))

    def finish(self, found: Finished, outputs_of: OutputsOf) -> list[tuple[int, Outputs]]:
        """The outputs of sentences that are decoded, with their numbers."""
        done = [(self._running.pop(number), hypotheses) for number, hypotheses in found]
        some = [each for each in done if each[0].ids]
        outputs = iter(outputs_of([unit for unit, _ in some], [each for _, each in some]))
        return [
            (number, next(outputs) if unit.ids else (unit.kept,))
            for (number, _), (unit, _) in zip(found, done, strict=True)
        ]
