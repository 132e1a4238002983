"""A student recipe from text to a packaged model: its teacher is a recipe that is run first."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.integration.kitchen import RECIPE
from tests.integration.workshop import ENGLISH, GERMAN, run

import transept
from transept.api.card import Card
from transept.data.shards import Manifest
from transept.text.files import read_text
from transept.text.spans import MASKS
from transept.text.variation import Variation

STUDENT = """
extends = "teacher.toml"
title = "Number words, by a student"

[[texts]]
name = "numbers"
source = "train.en"
target = "train.de"
translator = "TEACHER"
licence = "public domain"

[[texts]]
name = "back"
target = "more.de"
translator = "de-en"
licence = "public domain"

[[texts]]
name = "times"
generated = "times-of-day"
licence = "public domain"

[translation]
beam_size = 2
chunk = 100

[experiment.training]
max_steps = 20

[experiment.validation]
every_steps = 20
"""
TEACHER = """
[variation]
inserted = 0.3
unstopped = 0.1
"""
SETTINGS = {
    "train.en.xz": "train.en",
    "vocab_size = 300": "vocab_size = 340",
    "dropout = 0.05": "dropout = 0.0",
    "max_steps = 60": "max_steps = 150",
    "every_steps = 10": "every_steps = 150",
}
"""The kitchen's recipe, with steps enough to learn sentences in the same order."""


def write(stem: Path, n: int, seed: int) -> None:
    """Write sentences of number words in both languages, in the same order."""
    chance = random.Random(seed)
    pairs = [[chance.randrange(10) for _ in range(chance.randint(2, 5))] for _ in range(n)]

    def sentence(words: Sequence[str], pair: list[int]) -> str:
        return " ".join(words[i] for i in pair) + ".\n"

    for suffix, words in ((".en", ENGLISH), (".de", GERMAN)):
        stem.with_suffix(suffix).write_text("".join(sentence(words, pair) for pair in pairs))


@pytest.mark.slow
def test_student_learns_from_its_teacher_in_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, work = tmp_path / "text", tmp_path / "runs" / "student"
    data.mkdir()
    sizes = {"train": 300, "more": 60, "dev": 20, "test": 8, "other": 8}
    for seed, (name, n) in enumerate(sizes.items()):
        write(data / name, n, seed)
    text = RECIPE + TEACHER
    for old, new in SETTINGS.items():
        text = text.replace(old, new)
    (tmp_path / "teacher.toml").write_text(text)
    path = tmp_path / "student.toml"
    path.write_text(STUDENT.replace("TEACHER", str(tmp_path / "teacher.toml")))
    command = ("recipe", "run", path, "--work", work, "--data", data)
    assert run(*command) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:1].isalpha()]
    stages = ["prepare", "train", "average", "decode", "score", "package", "report"]
    assert shown[:17] == ["teacher", *stages, "student", "translate", *stages]
    assert (tmp_path / "runs" / "teacher" / "record.json").exists()

    record = json.loads((work / "record.json").read_bytes())
    numbers, back = record["stages"]["translate"]["results"]["texts"].values()
    assert (numbers["read"], numbers["chunks"], numbers["varied"]) == (300, 3, True)
    assert numbers["kept"] + sum(numbers["dropped"].values()) == 300
    assert numbers["kept"] > 0
    teacher = json.loads((tmp_path / "runs" / "teacher" / "record.json").read_bytes())
    assert numbers["weights"] == [teacher["stages"]["average"]["results"]["weights"]]
    assert (back["read"], back["varied"]) == (60, True)
    names = ("numbers", "back", "times")
    varied = [Manifest.load(work / "data" / name).settings.variation for name in names]
    assert varied == [None, None, Variation(inserted=0.3, unstopped=0.1)], "text is varied once"

    sides = [sorted((work / "translated" / "numbers").glob(f"*.{s}.zst")) for s in ("en", "de")]
    english, german = ([line for path in side for line in read_text(path)] for side in sides)
    assert any(MASKS[0] in line for line in english)
    assert all((MASKS[0] in e) == (MASKS[0] in d) for e, d in zip(english, german, strict=True))

    card = Card.load(work / "model")
    assert card is not None
    assert [source.name for source in card.data] == [
        *("numbers (target by teacher)", "back (source by de-en)", "times")
    ]
    assert transept.load(work / "model").translate("one two.").text
    assert run(*command) == 0
    shown_again = " ".join(capsys.readouterr().out.split())  # a long path wraps the lines
    assert shown_again.count("done before") == len(["translate", *stages])
