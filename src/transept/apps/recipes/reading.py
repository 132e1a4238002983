"""The sentences that a translator reads. This module does not import torch: workers import it."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

from transept.runtime.workers import Workers, available_cores
from transept.text.variation import Pair, Variation

Lines = tuple[str, ...]
MOST_WORKERS: Final = 8


@dataclass(frozen=True, slots=True)
class SentenceVariation:
    """Changes sentences before they are translated.

    Without the other side it is unknown which words are names, so none are masked. Only a source
    sentence is written in lower case. None is misspelt before it is translated.
    """

    variation: Variation | None
    languages: Pair
    """The source and the target language of the recipe."""
    has_source: bool
    has_target: bool

    def __call__(self, lines: Sequence[Lines]) -> list[str]:
        """The sentences to translate. Each of the lines is a sentence and perhaps its translation.

        An empty sentence stays empty.
        """
        return [self._varied(each) if each[0] else "" for each in lines]

    def _varied(self, lines: Lines) -> str:
        if self.variation is None:
            return lines[0]
        vary = replace(self.variation, misspelt=None)
        if self.has_source and self.has_target:
            return vary((lines[0], lines[1]), self.languages)[0]
        side = 0 if self.has_source else 1
        lowercase = vary.lowercase if self.has_source else 0.0
        alone = replace(vary, names=0.0, lowercase=lowercase)
        language = self.languages[side]
        return alone((lines[0], lines[0]), (language, language))[side]


def varied_chunks(
    lines: Iterable[Lines], size: int, vary: SentenceVariation
) -> Generator[list[str], None, None]:
    """Yield the sentences to translate in chunks. Workers vary the next ones meanwhile.

    Args:
        lines: The sentences, perhaps with their translations.
        size: The number of sentences of a chunk.
        vary: Changes the sentences.
    """
    chunks = _chunks(iter(lines), size)
    first = list(islice(chunks, 2))
    if len(first) < 2 or vary.variation is None:
        yield from map(vary, chain(first, chunks))
        return
    n_workers = min(available_cores(), MOST_WORKERS)
    with Workers([vary] * n_workers, "variation worker", list[str]) as pool:
        yield from pool.map(chain(first, chunks), n_workers + 1)


def _chunks(lines: Iterator[Lines], size: int) -> Iterator[list[Lines]]:
    while chunk := list(islice(lines, size)):
        yield chunk
