"""The packaged sentences are those that the generator makes, and their splits are disjoint."""

import lzma
import os
import subprocess
import sys
from itertools import combinations, islice
from pathlib import Path

import pytest
from grammar.file import FILE, lines, write

from grammar import EXAMPLES, Grammar, tokens
from transept.apps.recipes.sentences import BUILT_IN, Pair, built_in

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def packaged() -> dict[str, list[Pair]]:
    return built_in()


def read(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def test_generator_writes_the_file_that_the_demo_reads() -> None:
    assert FILE == BUILT_IN


def test_first_lines_are_generated_again() -> None:
    """The hash seed differs between test runs, so the lines do not depend on it."""
    n = 2000
    again = list(islice(lines(Grammar().splits(train=n, dev=0, test=0)), n))
    assert again == read(FILE).splitlines(keepends=True)[:n]


@pytest.mark.slow
def test_whole_file_is_generated_again_under_another_hash_seed(tmp_path: Path) -> None:
    path = tmp_path / "sentences.tsv.xz"
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "grammar", str(path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert read(path) == read(FILE)


def test_written_lines_are_split_source_and_target(tmp_path: Path) -> None:
    splits = Grammar().splits(train=300, dev=2, test=1)
    write(splits, tmp_path / "few.tsv.xz")
    rows = [line.split("\t") for line in read(tmp_path / "few.tsv.xz").splitlines()]
    assert [name for name, _, _ in rows] == ["train"] * 300 + ["dev"] * 2 + ["test"] + (
        ["examples"] * len(EXAMPLES)
    )
    assert rows[300][1:] == [*splits.dev[0][:2]]
    assert rows[-1][1:] == [*EXAMPLES[-1]]


def test_splits_have_their_sizes(packaged: dict[str, list[Pair]]) -> None:
    sizes = {name: len(dict(pairs)) for name, pairs in packaged.items()}
    assert sizes == {"train": 80_000, "dev": 1_000, "test": 1_000, "examples": 15}
    assert packaged["examples"] == [*EXAMPLES]


@pytest.mark.parametrize("side", [0, 1])
def test_splits_share_no_sentence(packaged: dict[str, list[Pair]], side: int) -> None:
    sets = [{pair[side] for pair in pairs} for pairs in packaged.values()]
    assert all(first.isdisjoint(second) for first, second in combinations(sets, 2))


@pytest.mark.parametrize("side", [0, 1])
def test_every_word_of_dev_and_test_occurs_in_train(
    packaged: dict[str, list[Pair]], side: int
) -> None:
    train, dev, test = (
        {word for pair in packaged[name] for word in tokens(pair[side])}
        for name in ("train", "dev", "test")
    )
    assert dev | test <= train
