"""The text of a recipe that writes its own: bundled sentences, or those of a folder. No torch."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from transept.apps.recipes.recipe import Recipe
from transept.errors import Argument, DataError
from transept.runtime.storage import new_directory, write_file
from transept.text.files import read_sentences, read_text

SPLITS: Final = ("train", "dev", "test")
HELD_OUT: Final = 1000
"""Sentences of dev, and of test, at most."""
FEWEST: Final = 100
"""With fewer pairs there is nothing to learn and nothing to test."""

BUILT_IN: Final = Path(__file__).with_name("sentences.tsv.xz")
"""Per line a split, an English and a German sentence. `python -m grammar` generates it."""

_COMPRESSED: Final = (".gz", ".xz", ".zst")

Pair = tuple[str, str]
Splits = Mapping[str, Sequence[Pair]]


def splits_of(recipe: Recipe) -> Splits:
    """The pairs that a recipe's `sentences` ask for: train, dev and test."""
    wanted = recipe.sentences
    assert wanted is not None
    if wanted.folder is not None:
        folder = Folder(wanted.folder, (recipe.source_language, recipe.target_language))
        return folder.splits(wanted.pairs, recipe.experiment.training.seed)
    held_out = min(HELD_OUT, wanted.pairs // 20)
    sizes = dict(zip(SPLITS, (wanted.pairs, held_out, held_out), strict=True))
    found = built_in()
    return {name: found[name][:size] for name, size in sizes.items()}


def built_in() -> dict[str, list[Pair]]:
    """The built-in English and German sentence pairs: train, dev, test and examples.

    The sentences of dev and test combine words in ways that train never does. The examples are
    sentences that a user might type. No sentence is in more than one of the four.

    Example:
        >>> built_in()["examples"][0]
        ('Where do you live?', 'Wo wohnst du?')
    """
    splits: dict[str, list[Pair]] = {}
    for line in read_text(BUILT_IN):
        name, source, target = line.split("\t")
        splits.setdefault(name, []).append((source, target))
    return splits


def write(splits: Splits, directory: Path, languages: Pair) -> None:
    """Write `train.en`, `train.de` and so on, all of them or none."""
    with new_directory(directory) as part:
        for name, pairs in splits.items():
            for side, language in enumerate(languages):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                write_file(part / f"{name}.{language}", text.encode())


# --- custom files -----------------------------------------------------------------------------


def choose_languages(folder: Path, source: str | None, target: str | None) -> Pair:
    """The source and target language of a folder with `train.en` and `train.de`.

    What is not named is taken from the files; where neither is, English is the source.
    """
    found = _languages_in(folder)
    listed = ", ".join(f"train.{language}" for language in found) or "no file train.*"
    for language in (source, target):
        if language is not None and language not in found:
            raise DataError(f"{folder}: there is no train.{language} in it, but {listed}")
    rest = [language for language in found if language not in (source, target)]
    rest.sort(key=lambda language: (language != "en", language))
    missing = (source, target).count(None)
    if len(rest) < missing:
        raise DataError(
            f"{folder}: there is {listed} in it; two files are needed, such as train.en and "
            "train.de, line n of one the translation of line n of the other"
        )
    if missing and len(rest) > missing:
        raise DataError(
            f"{folder}: there are {listed} in it; choose two with ", Argument("source_language"),
            " and ", Argument("target_language"),
        )  # fmt: skip
    chosen = (source or rest.pop(0), target or rest.pop(0))
    if chosen[0] == chosen[1]:
        raise DataError(f"{folder}: source and target are both {chosen[0]}; choose two languages")
    return chosen


def _languages_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder; give the one with train.en and train.de")
    names = [path.name for path in folder.glob("train.*") if path.is_file()]
    for suffix in _COMPRESSED:
        names = [name.removesuffix(suffix) for name in names]
    return sorted({name.removeprefix("train.") for name in names})


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with `train.en` and `train.de`, say, and perhaps dev and test of the same kind."""

    path: Path
    languages: Pair

    def splits(self, pairs: int, seed: int) -> Splits:
        """All three splits; dev or test, if it has no files, is held out from train."""
        train = self._read("train", pairs)
        if len(train) < FEWEST:
            raise DataError(
                f"{self.path}: its train has {len(train):,} pairs; at least {FEWEST} are needed"
            )
        missing = self.missing_splits()
        there = {name: self._read(name, HELD_OUT) for name in SPLITS[1:] if name not in missing}
        return hold_out(train, there, seed=seed)

    def missing_splits(self) -> list[str]:
        """Those of dev and test that have no files."""
        return [
            name
            for name in SPLITS[1:]
            if not any(self._find(name, language) for language in self.languages)
        ]

    def _find(self, split: str, language: str) -> Path | None:
        paths = (self.path / f"{split}.{language}{suffix}" for suffix in ("", *_COMPRESSED))
        return next((path for path in paths if path.is_file()), None)

    def _read(self, split: str, most: int) -> list[Pair]:
        """The first pairs of a split, without those of which a side is empty."""
        paths = []
        for language in self.languages:
            path = self._find(split, language)
            if path is None:
                raise DataError(
                    f"{self.path}: there is no {split}.{language}, the other side of its {split}; "
                    f"add it, or remove both and {split} is held out from train"
                )
            paths.append(path)
        pairs: list[Pair] = []
        for number, (source, target) in enumerate(zip_longest(*map(read_sentences, paths)), 1):
            if source is None or target is None:
                short = paths[0] if source is None else paths[1]
                raise DataError(
                    f"{short}: ends at line {number - 1:,}, and the other side goes on: line n of "
                    f"{paths[0].name} must be the translation of line n of {paths[1].name}"
                )
            pair = (source.strip(), target.strip())
            if len(pairs) < most and all(pair):
                pairs.append(pair)
        return pairs


def hold_out(train: Sequence[Pair], there: Splits, *, seed: int) -> Splits:
    """Take dev and test, unless they are `there`, out of train; then all that they say.

    A twentieth of train each, at most a thousand pairs.
    """
    chance = random.Random(seed)
    drawn = sorted(dict(train).items(), key=lambda _: chance.random())
    n = min(max(1, len(drawn) // 20), HELD_OUT)
    held = dict(there)
    for name in SPLITS[1:]:
        if name not in there:
            held[name], drawn = drawn[-n:], drawn[:-n]
    said = {source for pairs in held.values() for source, _ in pairs}
    rest = [pair for pair in train if pair[0] not in said]
    if len(rest) < FEWEST // 2:
        raise DataError(
            f"train has only {len(rest):,} pairs that dev and test do not have: too few to learn "
            "from; take files that do not overlap"
        )
    return {"train": rest, **held}
