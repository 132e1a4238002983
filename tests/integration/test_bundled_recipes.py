"""The recipes that are bundled with transept: those of the paper, and how they are shown."""

import gzip
import random
from pathlib import Path

import pytest
from tests.integration import workshop
from tests.integration.kitchen import STAGES, lines_of, record_of
from tests.integration.workshop import run
from tests.unit.data.fetching.test_fetch import tar, without_published_checksums

from transept.apps.recipes import recipe
from transept.data.fetching.datasets import DATASETS, DatasetName
from transept.data.fetching.fetch import fetch


def test_recipe_show_prints_a_recipe_or_the_names_of_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("recipe", "show") == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == recipe.names()
    assert run("recipe", "show", "wmt14-en-de-base", "average.last=7") == 0
    shown = capsys.readouterr().out
    assert "last = 7" in shown
    assert run("recipe", "show", "wmt14-en-de-bsae") == 2
    assert "did you mean 'wmt14-en-de-base'?" in capsys.readouterr().err


def test_time_limit_sets_the_checkpoint_interval() -> None:
    base = recipe.load("europarl-en-de-base").within(72.0).experiment.checkpoint
    assert (base.every_minutes, base.after_minutes, base.keep) == (1.0, 68.0, 5)


def test_dry_run_of_a_new_work_directory_lists_all_stages_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "new"
    assert run("recipe", "run", "wmt14-en-de-base", "--dry-run", "--work", work) == 0
    assert lines_of(capsys.readouterr().out) == dict.fromkeys(STAGES, "to do")
    assert not work.exists()


TINY = ["experiment.model.vocab_size=300", "experiment.model.n_layers=1",
        "experiment.model.d_model=16", "experiment.model.d_ff=32", "experiment.model.n_heads=2",
        "experiment.batch.source_tokens=512", "experiment.batch.target_tokens=512",
        "experiment.training.max_steps=4", "experiment.checkpoint.every_steps=1",
        "experiment.data.workers=0", "average.last=2"]  # fmt: skip


def numbers(language: str, n: int, seed: int) -> str:
    names = {"en": workshop.ENGLISH}.get(language, workshop.GERMAN)
    chance = random.Random(seed)
    drawn = [[chance.randrange(10) for _ in range(chance.randint(2, 7))] for _ in range(n)]
    return "".join(" ".join(names[i] for i in line) + "\n" for line in drawn)


def stand_ins(other: str) -> dict[str, bytes]:
    """Archives of the layout of WMT 2014's, of number words."""

    def plain(stem: str, n: int) -> dict[str, str | bytes]:
        return {f"{stem}.{side}": numbers(side, n, n) for side in ("en", other)}

    def test_set(role: str, side: str) -> str:
        lines = numbers(side, 5, 5).splitlines()
        marked = "".join(f'<seg id="{i}"> {line} </seg>\n' for i, line in enumerate(lines))
        return f'<srcset setid="newstest2014"><doc docid="1">\n{marked}</doc></srcset>\n'

    giga: dict[str, str | bytes] = {
        f"giga-fren.release2.fixed.{side}.gz": gzip.compress(numbers(side, 60, 60).encode())
        for side in ("en", other)
    }
    tests: dict[str, str | bytes] = {
        f"test-full/newstest2014-{other}en-{role}.{side}.sgm": test_set(role, side)
        for role, side in (("src", "en"), ("ref", other))
    }
    return {
        "training-parallel-europarl-v7.tgz": tar(plain(f"training/europarl-v7.{other}-en", 200)),
        "training-parallel-commoncrawl.tgz": tar(plain(f"commoncrawl.{other}-en", 80)),
        "training-parallel-nc-v9.tgz": tar(plain(f"training/news-commentary-v9.{other}-en", 90)),
        "training-parallel-un.tgz": tar(plain(f"un/undoc.2000.{other}-en", 50)),
        "training-giga-fren.tar": tar(giga, "w"),
        "dev.tgz": tar(plain("dev/newstest2013", 12)),
        "test-full.tgz": tar(tests),
    }


@pytest.mark.parametrize(
    "name", ["wmt14-en-de-base", pytest.param("wmt14-en-fr-big", marks=pytest.mark.slow)]
)
def test_the_papers_recipes_run_from_archives_to_a_record(name: str, tmp_path: Path) -> None:
    data, work = tmp_path / "wmt", tmp_path / "work"
    dataset: DatasetName = "wmt14-en-fr" if "fr" in name else "wmt14-en-de"
    (data / "downloads").mkdir(parents=True)
    for file, content in stand_ins(dataset[-2:]).items():
        (data / "downloads" / file).write_bytes(content)
    # Published checksums are those of the real archives, which these replace.
    fetch(without_published_checksums(DATASETS[dataset]), data)
    command = ["recipe", "run", name, *TINY, "--data", data, "--work", work]
    assert run(*command, "vocabulary.max_lines=400") == 0
    stages = record_of(work)["stages"]
    assert stages["prepare"]["results"]["corpora"]["train"]["read"] >= 370
    assert set(stages["score"]["results"]["tests"]) == {"newstest2014", "newstest2013"}
    assert stages["average"]["inputs"]["steps"] == [3, 4]


def test_archives_with_wrong_checksums_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "downloads").mkdir()
    for file, content in stand_ins("de").items():
        (tmp_path / "downloads" / file).write_bytes(content)
    words = ["recipe", "run", "wmt14-en-de-base", "--data", tmp_path, "--work", tmp_path / "w"]
    assert run(*words) == 3
    assert "is not the expected file" in capsys.readouterr().err
