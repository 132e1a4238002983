"""The chunks of a translated text on disk. This module does not import torch: a worker imports it.

A chunk is complete if its JSON file exists.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from transept.apps.recipes.filtering import find_flaw
from transept.runtime.storage import write_file, write_json
from transept.text.tokenizer import Tokenizer
from transept.text.variation import Pair, Variation

Counts = dict[str, Any]


class WrittenSentence(NamedTuple):
    """A sentence in another language, as a model wrote it."""

    text: str
    finished: bool
    too_long: bool
    """Whether the sentence was too long, and was translated in parts."""


class SearchedChunk(NamedTuple):
    """A chunk that has been translated, and is to be judged and written."""

    number: int
    read: list[str]
    """The sentences. An empty one has no translation."""
    written: dict[str, WrittenSentence]
    seconds: float
    """The duration of the search."""


@dataclass(frozen=True, slots=True)
class ChunkWriter:
    """Drops what cannot be used, and writes chunks."""

    directory: Path
    languages: Pair
    is_backward: bool
    """Whether the translations are the source side."""
    tokenizer: Tokenizer
    """Counts the tokens of the translations."""
    variation: Variation
    """Misspells the source side, which the translator reads or writes without mistakes."""

    def __call__(self, chunk: SearchedChunk) -> Counts:
        """Write the files of a chunk, and return its counts."""
        pairs, dropped = [], Counter[str]()
        for sentence in chunk.read:
            found = chunk.written.get(sentence, WrittenSentence("", finished=True, too_long=False))
            flaw = find_flaw(sentence, found.text, finished=found.finished, too_long=found.too_long)
            if flaw is None:
                pairs.append((sentence, found.text))
            else:
                dropped[flaw] += 1
        ids = self.tokenizer.encode_batch([translation for _, translation in pairs])
        self._write(chunk.number, pairs)
        counts = {
            "read": len(chunk.read),
            "kept": len(pairs),
            "dropped": dict(sorted(dropped.items())),
            "tokens": sum(map(len, ids)),
            "seconds": chunk.seconds,
        }
        write_json(self.directory / f"{chunk.number:05}.json", counts)
        return counts

    def _write(self, number: int, pairs: Sequence[Pair]) -> None:
        source, target = (1, 0) if self.is_backward else (0, 1)
        sides = (
            [self.variation.misspell(pair[source]) for pair in pairs],
            [pair[target] for pair in pairs],
        )
        for path, side in zip(
            chunk_paths(self.directory, number, self.languages), sides, strict=True
        ):
            content = "".join(f"{line}\n" for line in side).encode()
            write_file(path, zstandard.compress(content))


def chunk_paths(directory: Path, number: int, languages: Pair) -> tuple[Path, Path]:
    """The files of a chunk."""
    source, target = (directory / f"{number:05}.{language}.zst" for language in languages)
    return source, target


def chunk_counts(directory: Path) -> list[Counts]:
    """The counts of the complete chunks, up to the first that is missing."""

    def found() -> Iterator[Counts]:
        for number in count():
            path = directory / f"{number:05}.json"
            if not path.exists():
                return
            yield json.loads(path.read_bytes())

    return list(found())
