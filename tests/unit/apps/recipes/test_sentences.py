"""Bundled sentences and custom files of a recipe."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import SentencesConfig
from transept.apps.recipes.sentences import (
    Folder,
    Splits,
    built_in,
    choose_languages,
    hold_out,
    splits_of,
    write,
)
from transept.errors import DataError

PAIRS = [(f"source {n}", f"target {n}") for n in range(400)]


def fill(folder: Path, split: str, pairs: list[tuple[str, str]]) -> None:
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def read_own(folder: Path, pairs: int = 1000, seed: int = 1) -> Splits:
    return Folder(folder, ("en", "fr")).splits(pairs, seed)


# --- built-in sentences ------------------------------------------------------------------------


def built_in_splits(pairs: int) -> Splits:
    return splits_of(replace(recipe.load("demo"), sentences=SentencesConfig(pairs=pairs)))


def test_splits_of_a_smaller_demo_are_the_first_built_in_pairs() -> None:
    splits = built_in()
    assert built_in_splits(400) == {
        "train": splits["train"][:400],
        "dev": splits["dev"][:20],
        "test": splits["test"][:20],
    }


def test_splits_of_the_demo_are_all_built_in_pairs() -> None:
    splits = splits_of(recipe.load("demo"))
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": 80_000,
        "dev": 1_000,
        "test": 1_000,
    }
    assert splits.items() <= built_in().items()


def test_write_writes_all_files(tmp_path: Path) -> None:
    write({"train": [("a", "b"), ("c", "d")], "dev": []}, tmp_path / "text", ("en", "fr"))
    assert (tmp_path / "text" / "train.en").read_text() == "a\nc\n"
    assert (tmp_path / "text" / "train.fr").read_text() == "b\nd\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]


# --- custom files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "named", "chosen"),
    [
        (["train.de", "train.en"], (None, None), ("en", "de")),
        (["train.de", "train.en"], ("de", None), ("de", "en")),
        (["train.de", "train.en"], (None, "en"), ("de", "en")),
        (["train.fr", "train.it"], (None, None), ("fr", "it")),
        (["train.de.gz", "train.en.xz"], (None, None), ("en", "de")),
        (["train.de", "train.en", "train.fr"], ("fr", "de"), ("fr", "de")),
    ],
)
def test_languages_are_inferred_from_the_files(
    tmp_path: Path,
    files: list[str],
    named: tuple[str | None, str | None],
    chosen: tuple[str, str],
) -> None:
    for name in files:
        (tmp_path / name).touch()
    assert choose_languages(tmp_path, *named) == chosen


@pytest.mark.parametrize(
    ("files", "named", "complaint"),
    [
        ([], (None, None), "no file train"),
        (["train.de"], (None, None), "two files are required"),
        (["train.de", "train.en", "train.fr"], (None, None), "choose two with `source_language`"),
        (["train.de", "train.en", "train.fr"], ("en", None), "choose two with `source_language`"),
        (["train.de", "train.en"], ("fr", None), "train.fr is missing; found train.de, train.en"),
        (["train.de", "train.en"], ("en", "en"), "both en"),
    ],
)
def test_ambiguous_or_missing_languages_are_rejected(
    tmp_path: Path, files: list[str], named: tuple[str | None, str | None], complaint: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=complaint):
        choose_languages(tmp_path, *named)
    with pytest.raises(DataError, match="is not a folder"):
        choose_languages(tmp_path / "absent", None, None)


def test_missing_dev_and_test_are_held_out(tmp_path: Path) -> None:
    fill(tmp_path, "train", PAIRS)
    splits = read_own(tmp_path)
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": 360,
        "dev": 20,
        "test": 20,
    }
    assert sorted(pair for pairs in splits.values() for pair in pairs) == sorted(PAIRS)
    assert splits == read_own(tmp_path)
    assert splits["test"] != read_own(tmp_path, seed=2)["test"]


def test_existing_dev_and_test_are_used(tmp_path: Path) -> None:
    fill(tmp_path, "train", PAIRS)
    fill(tmp_path, "test", PAIRS[:30])
    splits = read_own(tmp_path)
    assert splits["test"] == PAIRS[:30]
    assert len(splits["dev"]) == 20
    sources = [{source for source, _ in pairs} for pairs in splits.values()]
    assert not sources[0] & (sources[1] | sources[2])


def test_held_out_sources_are_removed_from_train() -> None:
    again = [(source, "otherwise") for source, _ in PAIRS[:200]]
    splits = hold_out(PAIRS + again, {}, seed=1)
    sources = [{source for source, _ in pairs} for pairs in splits.values()]
    assert not sources[0] & sources[1]
    assert not sources[0] & sources[2]
    assert not sources[1] & sources[2]


def test_pairs_are_limited_and_empty_ones_skipped(tmp_path: Path) -> None:
    fill(tmp_path, "train", [("", "x"), ("x", " "), *PAIRS])
    splits = read_own(tmp_path, pairs=200)
    assert sorted(pair for pairs in splits.values() for pair in pairs) == sorted(PAIRS[:200])


def test_line_endings_are_stripped(tmp_path: Path) -> None:
    """Otherwise held-out sentences would not match train, nor translations their references."""
    fill(tmp_path, "train", PAIRS)
    fill(tmp_path, "test", [(f"{source}\r", f"{target} \r") for source, target in PAIRS[:20]])
    with_mark = tmp_path / "test.en"
    with_mark.write_bytes(b"\xef\xbb\xbf" + with_mark.read_bytes())
    splits = read_own(tmp_path)
    assert splits["test"] == PAIRS[:20]
    assert not {*splits["train"]} & {*PAIRS[:20]}


def test_compressed_files_are_read(tmp_path: Path) -> None:
    fill(tmp_path, "train", PAIRS)
    plain = tmp_path / "train.fr"
    (tmp_path / "train.fr.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert len(read_own(tmp_path)["train"]) == 360


def test_mismatched_files_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, "train", PAIRS)
    (tmp_path / "train.fr").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"train\.fr: ends at line 2, but the other side is longer"):
        read_own(tmp_path)
    fill(tmp_path, "train", PAIRS)
    (tmp_path / "dev.en").write_text("one\n")
    with pytest.raises(DataError, match=r"dev\.fr is missing, the other side of its dev"):
        read_own(tmp_path)


def test_too_little_text_is_rejected(tmp_path: Path) -> None:
    fill(tmp_path, "train", PAIRS[:99])
    with pytest.raises(DataError, match="train has 99 pairs; at least 100"):
        read_own(tmp_path)
    fill(tmp_path, "train", PAIRS[:120])
    fill(tmp_path, "test", PAIRS[:100])
    with pytest.raises(DataError, match=r"only .* pairs that are not in dev or test"):
        read_own(tmp_path)
