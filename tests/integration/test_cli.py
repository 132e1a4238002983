"""The command line: output, messages, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.workshop import interrupted_import, ran

from transept.apps.recipes.recipe import SHELF
from transept.cli.app import SPIN_COUNT, main
from transept.cli.info import info
from transept.shelf import find_model

BASE = Path(__file__).parents[2] / "configs/base.toml"
RECIPE = str(SHELF / "europarl-de-en-small.toml")


def test_info_prints_a_config_that_reads_back_the_same(tmp_path: Path) -> None:
    first = ran("info", str(BASE), "model.n_heads=16", "loss.label_smoothing=0.2")
    assert first.returncode == 0
    assert "n_heads = 16\nd_k = 32" in first.stdout
    (tmp_path / "again.toml").write_text(first.stdout)
    assert ran("info", str(tmp_path / "again.toml")).stdout == first.stdout
    described = json.loads(ran("info", str(tmp_path / "again.toml"), "--json").stdout)
    assert described["model"]["n_heads"] == 16


def test_info_prints_versions_devices_and_presets() -> None:
    report = json.loads(ran("info", "--json").stdout)
    assert report["versions"]["transept"]
    assert report["devices"][0].startswith("cpu")
    assert "B-dk16" in report["presets"]
    assert "big" in ran("info").stdout


def test_info_counts_parameters() -> None:
    report = json.loads(ran("info", "--presets", "--json").stdout)
    counts = {row["name"]: row["n_parameters"] for row in report["presets"]}
    assert counts["base"] == 63_045_632
    assert "63,045,632" in ran("info", "--presets").stdout


def test_info_presets_prints_label_smoothing_and_the_papers_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    info(presets=True, as_json=True)
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["presets"]}
    smoothing = {name: rows[name]["label_smoothing"] for name in ("base", "D-ls0", "D-ls2")}
    assert smoothing == {"base": 0.1, "D-ls0": 0.0, "D-ls2": 0.2}
    counts = {name: rows[name]["paper_millions"] for name in ("A-h1", "C-d1024", "tiny")}
    assert counts == {"A-h1": 65, "C-d1024": 168, "tiny": None}
    info(presets=True)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "name N d_model d_ff h d_k d_v P_drop ε_ls parameters paper" in lines
    assert "D-ls2 6 512 2048 8 64 64 0.1 0.2 63,045,632 65" in lines
    assert "tiny 2 128 512 4 32 32 0.1 0.1 5,658,624" in lines


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["info", "absent.toml"], "absent.toml: is neither a config file nor a model"),
        (["info", str(BASE), "model.n_headz=3"], "did you mean 'n_heads'?"),
        (["info", str(BASE), "model.n_heads=0"], "model.n_heads: 0 must be at least 1"),
        (["info", str(BASE), "model.d_model=511"], "must be even"),
        (["info", "en-de", "model.n_heads=2"], "overrides are for a config file, and en-de is not"),
        (["info", RECIPE], f"is a recipe. Use `transept recipe run {RECIPE}` to run it"),
        (["train", RECIPE, "--minutes", "1"], f"`transept recipe run {RECIPE}` to run it"),
        (["train", "en-de"], "en-de: is a model. To fine-tune it, name a corpus"),
        (["train", str(find_model("en-de"))], "is a model. To fine-tune it, name a corpus"),
        (["train", "wmt14-en-de-base"], "`transept recipe run wmt14-en-de-base` to run a recipe"),
        (["recipe", "run", str(BASE)], f"not a recipe; `transept train {BASE}` trains it"),
        (["recipe", "show", str(BASE)], f"`transept info {BASE}` prints it"),
        (["recipe", "show", RECIPE, "model.d_k=8"], "experiment; write experiment.model.d_k=8"),
        (["trian"], 'Did you mean "train"?'),
        (["nonsense"], "Available commands: translate, serve,"),
        (["--hlep"], 'Unknown command "--hlep". Available commands: translate, serve,'),
        (["Good morning."], 'Unknown command "Good morning.". Available commands: translate,'),
        (["data", "--output", "x"], 'Unknown command "--output". Available commands: fetch,'),
        (
            ["translate", "--beam-sise=3"],
            "Unknown option: --beam-sise=3. Did you mean --beam-size?",
        ),
        (
            ["translate", "--xyzzy"],
            "Unknown option: --xyzzy.\nSee `transept translate --help`.",
        ),
        (["translate", "-src", "x"], "'-src' is parsed as an option. Put text that"),
        (["score", "--src", "x", "--tgt", "y"], "Did you mean --source instead of --src?"),
        (["train", "x", "--max_steps=3"], "keys are given without dashes: model.dropout=0.2\n"),
        (["recipe", "run", "x", "--lr", "1"], "without dashes: experiment.model.dropout=0.2\n"),
        (["recipe", "run", "europarl-en-de"], "did you mean 'europarl-en-de-big'?"),
        (["info", "--vocab-size", "many"], "many"),
        (["info", "--vocab-size", "1000.5"], '--vocab-size: unable to convert "1000.5" into int.'),
        (["average", "x", "--last=1.5"], '--last: unable to convert "1.5" into int.'),
        (
            ["data", "prepare", "-o", "x", "--tokenizer", "x", "--columns", "1", "2.4"],
            '--columns: unable to convert "2.4" into int.',
        ),
        (
            ["translate", "x", "--beam-size", "1.5"],
            '--beam-size: unable to convert "1.5" into int.',
        ),
        (["translate", "- Hello.", "--model", "m"], "Put text that begins with a dash after"),
        (["parse", "--model", "m", "-LRB-"], "begins with a dash after the options and `--`"),
        (["translate", "x", "--n-best", "9"], "--n-best: 9 must not be more than the beam size, 4"),
        (["parse", "x", "--svg", "x.png"], "--svg x.png: its name must end in .svg"),
        (["visualize", "-o", "x.svg", "-LRB-"], "begins with a dash after the options and"),
        (
            ["info", "--vocab-size", "0", "--presets"],
            "--vocab-size: 0 takes the size from a corpus; without a corpus, set the size",
        ),
    ],
)
def test_invalid_arguments_exit_2_with_a_message(words: list[str], complaint: str) -> None:
    result = ran(*words)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert result.stderr.startswith("transept: ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_error_is_printed_once() -> None:
    said = ran("translate", "x", "--beam-size", "0").stderr
    assert said == "transept: --beam-size: 0 must be at least 1\n"


def test_fractions_are_accepted_as_numbers_and_in_text() -> None:
    assert ran("translate", "--length-penalty", "0.5", "--help").returncode == 0
    assert ran("info", "--vocab-size", "1000.0", "--presets").returncode == 0
    said = ran("translate", "--model", "nowhere", "--", "--beam-size", "1.5").stderr
    assert "into int" not in said


def test_debug_shows_the_traceback() -> None:
    result = ran("info", "absent.toml", "--debug")
    assert result.returncode == 2
    assert "Traceback" in result.stderr


def test_os_error_is_reported_without_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    recipe = ["recipe", "run", "europarl-en-de-small", "--data", str(tmp_path)]
    for work in (file, file / "inside"):
        result = ran(*recipe, "--work", str(work))
        assert result.returncode == 1
        assert f"transept: {file}: " in result.stderr
        assert "Traceback" not in result.stderr


def test_full_disk_at_standard_output_is_a_failure() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "transept", "recipe", "show"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert result.returncode == 1
    assert "No space left on device; check" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", ["recipe show", "translate --help"])
def test_closed_reader_is_not_a_failure(words: str) -> None:
    command = f"{sys.executable} -m transept {words} | true"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_help_is_printed_in_a_latin_1_locale() -> None:
    result = ran("translate", "--help", encoding="latin-1")
    assert (result.returncode, result.stderr) == (0, "")
    assert "? of Wu et al." in result.stdout


@pytest.mark.parametrize(("chosen", "expected"), [(None, "2000"), ("10", "10")])
def test_freed_memory_is_kept_unless_the_user_sets_it(
    chosen: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "MIMALLOC_PURGE_DELAY"
    monkeypatch.setenv(name, chosen or "")  # so that it is put back
    if chosen is None:
        del os.environ[name]
    with pytest.raises(SystemExit):
        main(["--version"])
    assert os.environ[name] == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, str(SPIN_COUNT)),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, None),
    ],
)
def test_main_sets_the_spin_count_where_the_user_has_not(
    chosen: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, chosen.get(name, ""))  # so that it is put back
        if name not in chosen:
            del os.environ[name]
    with pytest.raises(SystemExit):
        main(["--version"])
    assert os.environ.get("GOMP_SPINCOUNT") == expected


COMMANDS_THAT_IMPORT_TORCH = [
    "translate Hello.",
    *(
        pytest.param(command, marks=pytest.mark.slow)
        for command in (
            "serve --port 0",
            "translate Hello. --sample",
            "translate Hello. --output {tmp}/out",
            "evaluate --source {text} --reference {text}",
            "score --source {text} --target {text}",
            "parse --model nowhere Hello.",
            "export --to ctranslate2 --output {tmp}/out",
            "tune --source {text} --reference {text}",
            "average nowhere",
            "visualize Hello. --output {tmp}/out.svg",
            "info en-de",
        )
    ),
]


@pytest.mark.parametrize("command", COMMANDS_THAT_IMPORT_TORCH)
def test_ctrl_c_while_torch_is_imported_is_not_lost(command: str, tmp_path: Path) -> None:
    (text := tmp_path / "text.de").write_text("Hallo.\n")
    result = interrupted_import(*(word.format(tmp=tmp_path, text=text) for word in command.split()))
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "transept: stopped.\n"
    assert [*tmp_path.iterdir()] == [text]


@pytest.mark.parametrize("module", ["transept.cli.app", "cyclopts.core", "transept.cli.info"])
def test_ctrl_c_is_handled_from_the_first_import(module: str) -> None:
    result = interrupted_import("info", module=module)
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "transept: stopped.\n"
