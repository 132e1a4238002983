"""`transept export` and `transept import` with the bundled model and the real toolkits."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from tests.integration.workshop import ran, run

import transept
from transept.apps.convert import verification
from transept.apps.convert.exporting import Exportable, export_marian
from transept.checkpoint import weights_of
from transept.errors import CheckpointError, ConfigError

Capture = pytest.CaptureFixture[str]
TEXTS = [
    "Good morning.",
    "The old man reads a book in the house.",
    "Where is the railway station?",
    "In 2017, 1,234 people signed the letter.",
    "I have not seen her since last summer.",
]


@pytest.fixture(scope="session")
def model() -> transept.Transducer:
    return transept.load("en-de", engine="native")


@pytest.fixture(scope="session")
def greedy(model: transept.Transducer) -> list[str]:
    found = model.translate(TEXTS, beam_size=1, split=False, raw=True)
    return [one.text for one in found]


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("marian") / "there"
    assert run("export", "--to", "marian", "--output", output) == 0
    return output


def generate(model: Any, tokenizer: Any, **how: Any) -> list[str]:
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    found = model.generate(**batch, max_length=None, max_new_tokens=60, do_sample=False, **how)
    decoded: list[str] = tokenizer.batch_decode(found, skip_special_tokens=True)
    return decoded


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_transformers_runs_an_export(marian: Path, greedy: list[str]) -> None:
    transformers = import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(marian)
    assert isinstance(tokenizer, transformers.MarianTokenizer)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(marian).eval()
    assert generate(theirs, tokenizer, num_beams=1) == greedy


@pytest.mark.slow
def test_export_to_marian_and_back_gives_the_same_bits(
    marian: Path, model: transept.Transducer, tmp_path: Path, capsys: Capture
) -> None:
    assert run("import", marian, "--output", tmp_path / "back", "--source-language", "en") == 0
    said = capsys.readouterr().out
    assert "Hugging Face MarianMT" in said
    assert f"transept translate --model {tmp_path / 'back'}" in said
    back = transept.load(tmp_path / "back", engine="native")
    # MarianMT's config does not have these two, which only training uses.
    trained = model.model.config
    theirs = replace(back.model.config, dropout=trained.dropout, initial_gain=trained.initial_gain)
    assert theirs == trained
    ours, again = weights_of(model.model), weights_of(back.model)
    assert all(torch.equal(weight, again[name]) for name, weight in ours.items())
    assert back.source_tokenizer.sha256 == model.source_tokenizer.sha256
    assert run("info", tmp_path / "back") == 0
    assert "MarianMT" in capsys.readouterr().out


@pytest.mark.slow
def test_onnx_runtime_runs_an_export_in_a_quarter_of_the_size(
    greedy: list[str], tmp_path: Path, capsys: Capture
) -> None:
    sizes = []
    for quantization in ("float32", "int8"):
        output = tmp_path / quantization
        words = ["export", "--to", "onnx", "--output", output, "--quantization", quantization]
        assert run(*words) == 0
        said = capsys.readouterr().out
        assert f"verified with ONNX Runtime {onnxruntime.__version__}: 8 greedy" in said
        sizes.append((output / "encoder_model.onnx").stat().st_size)
        assert {"config.json", "vocab.json", "source.spm"} <= {one.name for one in output.iterdir()}
    assert sizes[1] < 0.35 * sizes[0]


ARGOS = """
import sys
from dataclasses import replace
import spacy
from argostranslate import package, settings, translate
package.install_from_path(sys.argv[1])
# The package brings no model that finds sentences. Argos would download one; this one is empty.
spacy.blank("en").to_disk(settings.package_data_dir / "translate-en_de-1_0" / "spacy")
english, german = sorted(translate.get_installed_languages(), key=lambda one: one.code)[::-1]
for line in sys.stdin:
    print(english.get_translation(german).translate(line.strip()))
"""


@pytest.fixture(scope="module")
def argos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("argos") / "en-de.argosmodel"
    printed = ran("export", "--to", "argos", "--output", output, "--quantization", "int8")
    assert printed.returncode == 0, printed.stderr
    assert "verified with CTranslate2" in printed.stdout
    return output


@pytest.mark.slow
def test_export_to_argos_can_be_imported_again(
    argos: Path, model: transept.Transducer, tmp_path: Path
) -> None:
    assert run("import", argos, "--output", tmp_path / "back") == 0
    back = transept.load(tmp_path / "back", engine="native")
    ours, theirs = (one.translate(TEXTS, raw=True) for one in (model, back))
    assert [one.text for one in theirs] == [one.text for one in ours]
    about = json.loads((tmp_path / "back/manifest.json").read_bytes())["about"]
    assert (about["source_language"], about["target_language"]) == ("en", "de")


@pytest.mark.slow
def test_argos_translate_installs_and_runs_an_export(
    argos: Path, model: transept.Transducer, tmp_path: Path
) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ARGOS, str(argos)],
        input="\n".join(TEXTS), capture_output=True, text=True, check=True, cwd=tmp_path,
        env=os.environ | {
            "ARGOS_PACKAGES_DIR": str(tmp_path / "packages"), "ARGOS_CHUNK_TYPE": "SPACY",
            "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"),
        },
    )  # fmt: skip
    theirs = found.stdout.splitlines()
    ours = [one.text for one in model.translate(TEXTS)]
    assert len(theirs) == len(ours)
    # Its beam search and its arithmetic of 8-bit integers differ.
    assert sum(one.strip() == other for one, other in zip(ours, theirs, strict=True)) >= 3


@pytest.mark.slow
def test_export_to_ctranslate2_can_be_imported_again(
    model: transept.Transducer, tmp_path: Path
) -> None:
    assert run("export", "--to", "ctranslate2", "--output", tmp_path / "there") == 0
    assert run("import", tmp_path / "there", "--output", tmp_path / "back") == 0
    ours, theirs = weights_of(model.model), weights_of(transept.load(tmp_path / "back").model)
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())


def test_export_that_runs_differently_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exportable = Exportable.load("en-de")
    with torch.no_grad():  # after this, the reference is another network than the file's
        spoilt = Exportable.load("en-de")
        spoilt.network.decoder.stack[0].feed_forward.w_1.weight *= 1.01
    monkeypatch.setattr(
        Exportable, "compare",
        lambda self, runner: verification.verify(spoilt.network, self.tokenizers[0], runner),
    )  # fmt: skip
    with pytest.raises(CheckpointError, match="differently"):
        export_marian(exportable, tmp_path / "there")
    assert not [*tmp_path.iterdir()]


def test_unsupported_network_is_rejected_by_name(tmp_path: Path) -> None:
    exportable = Exportable.load("en-de")
    config = exportable.network.config
    object.__setattr__(config, "norm", "pre")
    with pytest.raises(ConfigError, match=r"model\.norm: is 'pre'"):
        export_marian(exportable, tmp_path / "there")
    assert not [*tmp_path.iterdir()]


def test_wrong_options_are_named(tmp_path: Path, capsys: Capture) -> None:
    words = ["export", "--output", tmp_path / "there", "--to"]
    assert run(*words, "onnx", "--quantization", "float16") == 2
    assert "--to onnx has float32, int8" in capsys.readouterr().err
    assert run(*words, "marian", "--source-language", "en") == 2
    assert "are for --to argos" in capsys.readouterr().err
    assert run(*words, "argos", "--source-language", "../en") == 2
    assert "--source-language: is '../en'; give a code such as en" in capsys.readouterr().err
    assert run("import", tmp_path / "nothing", "--output", tmp_path / "there") == 4
    assert "is not a directory, a .npz file or an .argosmodel file" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert run("import", tmp_path / "empty", "--output", tmp_path / "there") == 4
    assert "none of the known formats" in capsys.readouterr().err
