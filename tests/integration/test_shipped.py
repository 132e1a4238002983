"""Bundled models are found by name, are small, and are part of the wheel."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from tests.integration.workshop import run

import transept
from transept import config
from transept.api.card import CARD, README, Card
from transept.api.documents import Document
from transept.apps.recipes import recipe
from transept.apps.recipes.sentences import BUILT_IN
from transept.apps.serve.models import open_model
from transept.checkpoint import Bundle
from transept.cli import models as cli_models
from transept.errors import CheckpointError, ConfigError
from transept.evaluation.conventions import chrf
from transept.experiment import Experiment
from transept.model.transformer import Transformer
from transept.shelf import DEFAULT, SHELF, SHELVES, find_model, shipped_models
from transept.text.files import read_text
from transept.training.config import CheckpointConfig

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 12_000_000
"""The maximum size of a bundled model in bytes."""
ALL_TOGETHER = 48_000_000
PAIRS = ("en-de", "de-en", "en-fr", "fr-en")


@pytest.fixture(scope="module")
def shelf(cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shelf with a model of a recipe."""
    place = tmp_path_factory.mktemp("shelf")
    shutil.copytree(cooked / "model", place / "en-de")
    return place


@pytest.fixture
def on_the_shelf(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(SHELVES, str(shelf))
    return shelf


def test_bundled_model_is_found_by_name(
    on_the_shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = transept.load("en-de")
    same = transept.load(on_the_shelf / "en-de")
    assert model.translate("one two").text == same.translate("one two").text
    assert run("translate", "--model", "en-de", "one two") == 0
    named = capsys.readouterr().out
    assert run("translate", "one two") == 0
    assert capsys.readouterr().out == named


def test_card_contains_terms_scores_and_limits(
    on_the_shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("info", "en-de") == 0
    shown = capsys.readouterr().out
    assert "numbers: 564 pairs. Terms: public domain. Attribution: ourselves." in shown
    assert "first, 12 sentences: sacreBLEU" in shown
    assert "nrefs:1|case:mixed|eff:no|tok:13a" in shown
    assert "It counts to ten." in shown
    assert re.search(r"^stored in +int8$", shown, re.MULTILINE)
    assert re.search(rf"^directory +{re.escape(str(on_the_shelf / 'en-de'))}$", shown, re.MULTILINE)
    assert run("info", on_the_shelf / "en-de") == 0
    assert capsys.readouterr().out == shown
    assert run("info", "en-de", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["card"]["data"][1]["name"] == "more"
    card = Card.load(on_the_shelf / "en-de")
    assert card is not None
    assert (on_the_shelf / "en-de" / README).read_text() == card.markdown()


def test_the_scores_are_those_of_the_stored_weights(shelf: Path, cooked: Path) -> None:
    card = Card.load(shelf / "en-de")
    assert card is not None
    tests = cooked / "tests"
    sources, references = (list(read_text(tests / f"second.{side}")) for side in ("en", "de"))
    model = transept.load(shelf / "en-de", engine="native")
    found = model.translate(sources, split=False)
    stored = next(one for one in card.results if (one.test, one.name) == ("second", "chrF2"))
    assert stored.value == round(chrf([one.text for one in found], references).value, 2)


def test_a_card_is_part_of_what_is_verified(shelf: Path, tmp_path: Path) -> None:
    shutil.copytree(shelf / "en-de", tmp_path / "en-de")
    with (tmp_path / "en-de" / CARD).open("a") as file:
        file.write("\n")
    with pytest.raises(CheckpointError, match=r"card\.toml: is damaged"):
        transept.load(tmp_path / "en-de")


def test_no_path_of_the_machine_is_shipped(shelf: Path, cooked: Path) -> None:
    for path in (shelf / "en-de").rglob("*"):
        if path.is_file():
            assert str(cooked.parent).encode() not in path.read_bytes(), path


def test_name_is_optional_for_a_single_bundled_model(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHELVES, str(tmp_path))
    monkeypatch.setattr("transept.shelf.SHELF", tmp_path / "nothing")
    (tmp_path / "de-en").symlink_to(shelf / "en-de")
    assert find_model() == tmp_path / "de-en"
    (tmp_path / "en-fr").symlink_to(shelf / "en-de")
    with pytest.raises(ConfigError, match="set `model` to one of de-en, en-fr"):
        find_model()
    (tmp_path / "en-de").symlink_to(shelf / "en-de")
    assert find_model() == tmp_path / "en-de"
    # Requests to the server without languages use its first model, which is the default here too.
    assert list(shipped_models()) == ["en-de", "de-en", "en-fr"]
    (tmp_path / "no-model").mkdir()
    assert "no-model" not in shipped_models()


def test_server_reads_languages_from_the_card(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(shelf / "en-de")
    (served,) = open_model(str(tmp_path / "mine"), None, None, "cpu")
    assert str(served) == "en-de"


# --- models of this package ------------------------------------------------------------------


def shipped_here() -> list[Path]:
    return sorted(path.parent for path in SHELF.glob("*/manifest.json"))


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def test_bundled_models_are_small_complete_and_have_a_card() -> None:
    assert DEFAULT in {path.name for path in shipped_here()}
    for directory in shipped_here():
        assert size_of(directory) <= LARGEST, directory
        bundle = Bundle.open(directory)
        card = Card.load(directory)
        assert card is not None
        assert bundle.precision == card.precision
        texts = recipe.load(card.recipe).texts
        assert [text.name.partition(" ")[0] for text in card.data] == [one.name for one in texts]
        assert all(text.licence and text.attribution for text in card.data)
        assert (directory / README).read_text(encoding="utf-8") == card.markdown()
    assert sum(map(size_of, shipped_here())) <= ALL_TOGETHER


def test_bundled_model_translates(capsys: pytest.CaptureFixture[str]) -> None:
    """Three ways to the same words: the paper's search, the default engine, and Python."""
    sentence, expected = "I would like a cup of tea.", "Ich hätte gerne eine Tasse Tee."
    for engine in ("native", "auto"):
        assert run("translate", sentence, "--engine", engine) == 0
        said = capsys.readouterr()
        assert said.out == f"{expected}\n"
        assert said.err == ""
    assert transept.load("en-de").translate(sentence).text == expected


@pytest.mark.parametrize("engine", ["native", "auto"])
def test_bundled_model_translates_back(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "Meine Schwester wohnt seit drei Jahren in Berlin."
    assert run("translate", "--model", "de-en", sentence, "--engine", engine) == 0
    said = capsys.readouterr()
    assert said.out == "My sister has lived in Berlin for three years.\n"
    assert said.err == ""


def test_bundled_model_writes_french_typography(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("translate", "--model", "en-fr", "Where is the train station?") == 0
    assert capsys.readouterr().out == "Où est la gare ?\n"


@pytest.mark.parametrize(("options", "hints"), [([], 1), (["--engine", "native"], 0)])
def test_translate_names_a_faster_engine_once_for_many_lines(
    options: list[str],
    hints: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli_models, "MANY_TEXTS", 2)
    lines = tmp_path / "lines.txt"
    lines.write_text("Good morning.\nGood night.\n", encoding="utf-8")
    assert run("translate", "--input", lines, *options) == 0
    assert capsys.readouterr().err.count("hint: --engine ctranslate2-int8 is faster") == hints


def test_the_fastest_engine_of_a_model_in_int8_on_a_cpu_is_ctranslate2() -> None:
    automatic, fastest = transept.load("en-de"), transept.load("en-de", engine="fastest")
    assert automatic.engine.name == "native"
    assert fastest.engine.name == "CTranslate2 int8"


def test_bundled_model_aligns_words_by_attention() -> None:
    translator = transept.load("en-de")
    asked = {
        "I <b>really</b> like this <a>new house</a>.": ("<b>wirklich</b>", "<a>neue Haus</a>"),
        "<i>Tom</i> bought a <u>red</u> car.": ("<i>Tom</i>", "<u>rotes</u> Auto"),
    }
    for source, expected in asked.items():
        text = Document.of(source, "html", "en")
        results = translator.translate(text.sentences, alignments=True, split=False)
        found = text.assemble(results, 1).text
        assert all(each in found for each in expected), found


@pytest.mark.parametrize("name", PAIRS)
def test_card_scores_reach_the_minimum(name: str) -> None:
    card = Card.load(SHELF / name)
    assert card is not None
    assert f"{card.source_language}-{card.target_language}" == name
    bleu = {one.test: one.value for one in card.results if one.name == "sacreBLEU"}
    assert bleu["tatoeba"] >= 30


def test_parse_rejects_a_translation_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "one two") == 2
    assert "no parser is bundled: set --model" in capsys.readouterr().err
    assert run("parse", "one two", "--model", "en-de") == 2
    assert "en-de: is not a parsing model" in capsys.readouterr().err


def test_directory_hides_a_bundled_model_only_if_it_is_a_model(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-de").mkdir()
    assert find_model("en-de") == SHELF / "en-de"
    shutil.copytree(shelf / "en-de", tmp_path / "en-de", dirs_exist_ok=True)
    assert find_model("en-de") == Path("en-de")
    with pytest.raises(CheckpointError, match="Bundled models: en-de, de-en, en-fr, fr-en"):
        find_model("en-nl")


def test_unknown_engine_is_reported() -> None:
    with pytest.raises(ConfigError, match="'nativ' is not an engine; did you mean 'native'"):
        transept.load("en-de", engine="nativ")  # type: ignore[arg-type]


def test_fine_tuning_a_bundled_model_writes_regular_checkpoints(shelf: Path) -> None:
    for directory in (shelf / "en-de", SHELF / "en-de"):
        shipped = config.load(Experiment, directory / "config.toml")
        assert shipped.checkpoint == CheckpointConfig()
        assert shipped.data.train == ()


def test_a_small_recipe_makes_a_model_that_can_be_shipped() -> None:
    for pair in PAIRS:
        with torch.device("meta"):
            experiment = recipe.load(f"distil-{pair}-small").experiment
            n = Transformer(experiment.model).n_parameters()
        assert n * 1.025 + 200_000 < LARGEST


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The files of the package in a wheel, and how large each is."""
    there = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(there)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = there.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return {one.filename.removeprefix("transept/"): one.file_size for one in archive.infolist()}


def test_the_wheel_holds_the_recipes(wheel: dict[str, int]) -> None:
    assert recipe.names()
    assert {f"apps/recipes/{name}.toml" for name in recipe.names()} <= wheel.keys()


def test_the_wheel_holds_the_sentences_of_the_demo(wheel: dict[str, int]) -> None:
    assert wheel["apps/recipes/sentences.tsv.xz"] == BUILT_IN.stat().st_size
    assert not [name for name in wheel if name.startswith("grammar")]


def test_the_wheel_holds_the_models(wheel: dict[str, int]) -> None:
    for directory in shipped_here():
        for path in directory.rglob("*"):
            if path.is_file():
                name = path.relative_to(SHELF.parent).as_posix()
                assert wheel[name] == path.stat().st_size


def test_invalid_card_is_rejected(tmp_path: Path) -> None:
    assert Card.load(tmp_path) is None
    (tmp_path / CARD).write_text('title = "x"\n')
    with pytest.raises(CheckpointError, match="is not a model card"):
        Card.load(tmp_path)
