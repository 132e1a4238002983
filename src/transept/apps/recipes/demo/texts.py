"""The sentences of a demo in three splits: built-in, or from custom files. No torch."""

import random
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from transept.apps.recipes.demo.plan import HELD_OUT, DemoPlan
from transept.errors import Argument, DataError
from transept.runtime.storage import new_directory, write_file
from transept.text.files import read_sentences, read_text

SPLITS: Final = ("train", "dev", "test")
FEWEST: Final = 100
"""With fewer pairs there is nothing to learn and nothing to test."""

BUILT_IN: Final = Path(__file__).with_name("sentences.tsv.xz")
"""Per line a split, an English and a German sentence. `python -m grammar` generates it."""

_COMPRESSED: Final = (".gz", ".xz", ".zst")

Pair = tuple[str, str]
Splits = Mapping[str, Sequence[Pair]]


def read(plan: DemoPlan) -> Splits:
    """The three splits that a plan asks for."""
    if plan.data is not None:
        return read_own(plan)
    held_out = min(HELD_OUT, plan.pairs // 20)
    sizes = dict(zip(SPLITS, (plan.pairs, held_out, held_out), strict=True))
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


def write(splits: Splits, directory: Path, plan: DemoPlan) -> None:
    """Write `train.en`, `train.de` and so on, all of them or none."""
    with new_directory(directory) as part:
        for name, pairs in splits.items():
            for side, language in enumerate((plan.source_language, plan.target_language)):
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


def read_own(plan: DemoPlan) -> Splits:
    """A person's own pairs; what there is no file for is held out from train."""
    train = _read_pairs(plan, "train", plan.pairs)
    if len(train) < FEWEST:
        raise DataError(
            f"{plan.data}: its train has {len(train):,} pairs; at least {FEWEST} are needed"
        )
    there = {
        name: _read_pairs(plan, name, HELD_OUT)
        for name in SPLITS[1:]
        if name not in missing_splits(plan)
    }
    return hold_out(train, there, seed=plan.seed)


def missing_splits(plan: DemoPlan) -> list[str]:
    """Of dev and test those that have no file of their own."""
    languages = (plan.source_language, plan.target_language)
    return [
        name
        for name in SPLITS[1:]
        if not any(_find(plan, name, language) for language in languages)
    ]


def hold_out(train: Sequence[Pair], there: Splits, *, seed: int) -> Splits:
    """Take dev and test, unless they are `there`, out of train; then all that they say.

    A twentieth of train each, at most a thousand pairs.
    """
    chance = random.Random(seed)
    drawn = sorted(dict(train).items(), key=lambda _: chance.random())
    n = min(max(1, len(drawn) // 20), HELD_OUT)
    held = {name: there[name] if name in there else _take(drawn, n) for name in SPLITS[1:]}
    said = {source for pairs in held.values() for source, _ in pairs}
    rest = [pair for pair in train if pair[0] not in said]
    if len(rest) < FEWEST // 2:
        raise DataError(
            f"train has only {len(rest):,} pairs that dev and test do not have: too few to learn "
            "from; take files that do not overlap"
        )
    return {"train": rest, **held}


def _take(pairs: list[Pair], n: int) -> list[Pair]:
    taken = pairs[-n:]
    del pairs[-n:]
    return taken


def _languages_in(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder; give the one with train.en and train.de")
    names = (path.name for path in folder.glob("train.*") if path.is_file())
    return sorted({_plain(name).removeprefix("train.") for name in names})


def _plain(name: str) -> str:
    """A file's name without the suffix of its compression."""
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return name


def _find(plan: DemoPlan, split: str, language: str) -> Path | None:
    assert plan.data is not None
    wanted = f"{split}.{language}"
    return next(
        (
            plan.data / f"{wanted}{suffix}"
            for suffix in ("", *_COMPRESSED)
            if (plan.data / f"{wanted}{suffix}").is_file()
        ),
        None,
    )


def _read_pairs(plan: DemoPlan, split: str, most: int) -> list[Pair]:
    """The first pairs of a split, without those of which a side is empty."""
    paths = []
    for language in (plan.source_language, plan.target_language):
        path = _find(plan, split, language)
        if path is None:
            raise DataError(
                f"{plan.data}: there is no {split}.{language}, the other side of its {split}; "
                f"add it, or remove both and {split} is held out from train"
            )
        paths.append(path)
    lines = zip_longest(*map(read_sentences, paths))
    pairs: list[Pair] = []
    for number, (source, target) in enumerate(lines, start=1):
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
