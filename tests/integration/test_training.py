"""`transept train` from prepared corpora to averaged checkpoints, and its failures."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.integration.workshop import Workshop, interrupted_import, prepare_otherwise, run

from transept.checkpoint import Bundle, Checkpoints
from transept.training.observers import read_metrics

DETERMINISTIC = ("kind", "step", "epoch", "loss", "nll", "lr", "gradient_norm", "perplexity")


def metrics(directory: Path) -> list[dict[str, Any]]:
    """The part of a run's log that must not depend on the clock."""
    return [
        {key: value for key, value in line.items() if key in DETERMINISTIC}
        for line in read_metrics(directory / "metrics.jsonl")
        if line["kind"] in ("step", "validation")
    ]


def final_tensors(directory: Path) -> dict[str, torch.Tensor]:
    newest = Checkpoints(directory / "checkpoints").newest()
    assert newest is not None
    return newest.weights() | newest.training()


def assert_same_run(one: Path, other: Path) -> None:
    assert metrics(one) == metrics(other)
    ours, theirs = final_tensors(one), final_tensors(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def start(workshop: Workshop, output: Path, *overrides: str) -> subprocess.Popen[str]:
    words = ["train", str(workshop.config), *overrides, "--output", str(output)]
    return subprocess.Popen(
        [sys.executable, "-m", "transept", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
    )


def wait_for_step(process: subprocess.Popen[str], output: Path, step: int) -> bool:
    """Whether the run got that far before it ended."""
    while process.poll() is None:
        lines = read_metrics(output / "metrics.jsonl")
        if any(line.get("step", 0) >= step for line in lines if line["kind"] == "step"):
            return True
        time.sleep(0.005)
    return False


def train_through_kills(workshop: Workshop, output: Path, kills: int, *overrides: str) -> int:
    """Kill the run `kills` times at random moments; return the number of kills during training."""
    chance = random.Random(kills)
    hits = 0
    for _ in range(kills):
        process = start(workshop, output, *overrides)
        done = max(
            (line.get("step", 0) for line in read_metrics(output / "metrics.jsonl")), default=0
        )
        wait_for_step(process, output, chance.randint(1, max(2, done + 4)))
        time.sleep(chance.uniform(0, 0.05))
        hits += process.poll() is None
        process.kill()
        process.communicate()
    process = start(workshop, output, *overrides)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return hits


KILLS = 3  # `tests/faults` kills more runs, which have no workers
OPTIONS = ("training.max_steps=40", "data.workers=1", "training.clip_norm=0.5",
           "training.ema_decay=0.9")  # fmt: skip


@pytest.mark.slow
def test_kill_9_at_random_moments_keeps_the_run_bit_identical(
    workshop: Workshop, tmp_path: Path
) -> None:
    straight = start(workshop, tmp_path / "straight", *OPTIONS)
    _, errors = straight.communicate()
    assert straight.returncode == 0, errors
    hits = train_through_kills(workshop, tmp_path / "killed", KILLS, *OPTIONS)
    assert hits >= KILLS // 2
    assert_same_run(tmp_path / "straight", tmp_path / "killed")


@pytest.mark.slow
def test_the_same_seed_and_any_number_of_workers_give_the_same_run(
    workshop: Workshop, tmp_path: Path
) -> None:
    for name, workers in [("0", 0), ("again", 0), ("4", 4)]:
        words = ["train", workshop.config, f"data.workers={workers}", "training.max_steps=12"]
        assert run(*words, "--output", tmp_path / name) == 0
        assert_same_run(tmp_path / "0", tmp_path / name)
    words = ["train", workshop.config, "training.seed=2", "training.max_steps=1"]
    assert run(*words, "--output", tmp_path / "other") == 0
    assert metrics(tmp_path / "0")[0] != metrics(tmp_path / "other")[0]


# `tests/faults` stops runs by SIGTERM and SIGINT.
def test_sighup_saves_exits_75_and_the_run_resumes(workshop: Workshop, tmp_path: Path) -> None:
    options = ("checkpoint.every_steps=none", "validation.every_steps=100")
    process = start(workshop, tmp_path / "stopped", *options)
    assert wait_for_step(process, tmp_path / "stopped", 7)
    process.send_signal(signal.SIGHUP)
    _, errors = process.communicate()
    assert process.returncode == 75, errors
    assert "stopped" in errors
    assert "saved; run the same command to resume" in errors
    assert Checkpoints(tmp_path / "stopped/checkpoints").steps()[-1] >= 7
    for name in ("stopped", "straight"):
        assert run("train", workshop.config, *options, "--output", tmp_path / name) == 0
    assert_same_run(tmp_path / "stopped", tmp_path / "straight")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)]
)
def test_a_signal_before_the_first_step_exits_75_too(
    workshop: Workshop, tmp_path: Path, number: signal.Signals
) -> None:
    config = tmp_path / "endless.toml"
    os.mkfifo(config)
    process = start(replace(workshop, config=config), tmp_path / "run")
    with config.open("wb"):  # which waits until it is being read
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == 75, errors
    assert errors.startswith("transept: stopped without a new checkpoint. Run the same")
    assert "Traceback" not in errors


def test_a_signal_while_torch_is_imported_is_not_lost(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", str(workshop.config), "--output", str(tmp_path / "run")]
    result = interrupted_import(*words)
    assert result.returncode == 75, result.stderr
    assert not (tmp_path / "run").exists()


def test_time_limit_saves_a_checkpoint_and_exits_75(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "training.max_steps=100000", "--output", tmp_path / "run"]
    assert run(*words, "--minutes", "0.01") == 75
    assert Checkpoints(tmp_path / "run/checkpoints").newest() is not None


def test_zero_minutes_are_rejected(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", workshop.config, "--output", tmp_path / "run", "--minutes", "-1") == 2
    assert "--minutes must be more than 0" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_too_long_pairs_are_counted(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=1"]
    assert run(*words) == 0
    assert "skipped" not in capsys.readouterr().err
    words[3] = tmp_path / "short"
    assert run(*words, "batch.max_length=10") == 0
    errors = " ".join(capsys.readouterr().err.split())
    assert re.search(r"\d+ of \d+ pairs are skipped: .* batch.max_length = 10", errors)


def test_damaged_checkpoints_are_skipped_and_reported(
    workshop: Workshop, straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(straight, tmp_path / "harmed")
    checkpoints = Checkpoints(tmp_path / "harmed/checkpoints")
    path = checkpoints.path(30) / "weights.safetensors"
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    path.write_bytes(flipped)
    (checkpoints.path(25) / "training.safetensors").write_bytes(b"cut")
    capsys.readouterr()
    assert run("train", workshop.config, "--output", tmp_path / "harmed") == 0
    errors = capsys.readouterr().err
    assert "step-00000030/weights.safetensors: is damaged" in errors
    assert "step-00000025/training.safetensors: is damaged" in errors
    assert "resuming from step 20" in errors
    assert_same_run(straight, tmp_path / "harmed")


@pytest.mark.slow
def test_a_full_disk_loses_nothing(workshop: Workshop, tmp_path: Path) -> None:
    """Files may not grow beyond 64 KB, as on a disk that is full; then they may."""
    output = tmp_path / "run"
    code = """
import resource, signal, sys
from transept.cli.app import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
main(sys.argv[1:])
"""
    assert run("train", workshop.config, "training.max_steps=5", "--output", output) == 0
    words = ["train", str(workshop.config), "--output", str(output), "--allow-change"]
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert result.returncode == 4, result.stderr
    assert "step-00000010: cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert Checkpoints(output / "checkpoints").steps() == [5]
    assert run(*words) == 0
    assert Checkpoints(output / "checkpoints").steps()[-1] == 30


def test_nan_gradients_stop_the_run_and_keep_the_weights(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "schedule.factor=1e38", "training.max_suppressed=3"]
    assert run(*words, "--output", tmp_path / "run") == 1
    errors = capsys.readouterr().err
    assert "3 steps in a row were not finite numbers" in errors
    assert "schedule.factor" in errors


@pytest.mark.slow
def test_insufficient_memory_is_reported_at_once(workshop: Workshop, tmp_path: Path) -> None:
    code = """
import resource, sys
from transept.cli.app import main
import transept.assembly
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = in_use + 700 * 1024**2
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
main(sys.argv[1:])
"""
    words = ["train", str(workshop.config), "--output", str(tmp_path / "run"), "model.d_ff=2048",
             "batch.source_tokens=65536", "batch.target_tokens=65536"]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    assert "does not fit into memory" in result.stderr
    assert re.search(r"fits: make batch.micro_batches \d+ times as large", result.stderr)
    assert metrics(tmp_path / "run") == []


def test_patience_ends_a_run_and_the_best_is_kept(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "training.max_steps=100", "validation.every_steps=5",
             "validation.patience=2", "schedule.factor=30.0", "checkpoint.keep=1"]  # fmt: skip
    assert run(*words, "--output", tmp_path / "run") == 0
    lines = read_metrics(tmp_path / "run/metrics.jsonl")
    assert lines[-1]["outcome"] == "no longer improving"
    validations = [line for line in lines if line["kind"] == "validation"]
    best = min(validations, key=lambda line: line["nll"])
    assert [line["step"] for line in validations][-3:] == [best["step"] + 5 * i for i in range(3)]
    kept = Checkpoints(tmp_path / "run/checkpoints").steps()
    assert kept == sorted({best["step"], validations[-1]["step"]})


def test_fine_tuning_starts_from_a_bundle_with_the_same_vocabulary(
    workshop: Workshop, straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(straight, tmp_path / "first")
    assert run("average", tmp_path / "first", "--last", "3") == 0
    bundle = tmp_path / "first/average-3"
    words = ["train", workshop.config, "training.max_steps=2", "schedule.factor=1e-9"]
    assert run(*words, "--init", bundle, "--output", tmp_path / "second") == 0
    after = metrics(tmp_path / "second")[-1]
    assert after["nll"] < metrics(tmp_path / "first")[0]["nll"] - 0.5
    # Given a model instead of a config file, its config is used, with a low learning rate.
    data = f'data.train=[{{path="{workshop.directory / "train-ids"}"}}]'
    assert run("train", bundle, data, "training.max_steps=1", "--output", tmp_path / "tuned") == 0
    settings = tomllib.loads((tmp_path / "tuned/config.toml").read_text())
    assert settings["schedule"]["factor"] == 0.02
    assert metrics(tmp_path / "tuned")[0]["nll"] < metrics(tmp_path / "first")[0]["nll"] - 0.5
    # Of a run its average is meant, as everywhere.
    assert run(*words, "--init", tmp_path / "first", "--output", tmp_path / "again") == 0
    assert metrics(tmp_path / "again")[-1]["nll"] == after["nll"]

    ids = prepare_otherwise(tmp_path)
    capsys.readouterr()
    changed = [f'data.train=[{{path="{ids}"}}]', "data.dev=none"]
    assert run(*words, *changed, "--init", bundle, "--output", tmp_path / "third") == 3
    assert "its tokenizer differs from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("every", "expected"), [("none", [26, 27, 28, 29, 30]), ("8", [8, 16, 24, 30])]
)
def test_a_run_that_counts_steps_does_not_look_at_the_clock(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: str,
    expected: list[int],
) -> None:  # fmt: skip
    """The clock advances by an hour at each call."""
    hours = itertools.count(time.monotonic(), 3600.0)
    monkeypatch.setattr("transept.training.trainer.time", SimpleNamespace(monotonic=hours.__next__))
    words = ["train", workshop.config, f"checkpoint.every_steps={every}", "data.dev=none"]
    assert run(*words, "--output", tmp_path / "run") == 0
    assert Checkpoints(tmp_path / "run/checkpoints").steps() == expected


@pytest.mark.parametrize(
    ("override", "code", "complaint"),
    [
        ("model.vocab_size=301", 2, "set model.vocab_size=300"),
        ("data.train=[]", 2, "data.train: is empty"),
        ('data.dev="absent"', 3, "absent is not a prepared corpus"),
        ("training.device=cuda", 2, "sees no GPU"),
        ("training.device=gpu", 2, "training.device: 'gpu' cannot be used"),
        ("training.device=mps", 2, "training.device: 'mps' cannot be used"),
        ("batch.tile=512", 2, "batch.source_tokens"),
    ],
)
def test_invalid_training_is_rejected_before_it_starts(
    workshop: Workshop,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    override: str,
    code: int,
    complaint: str,
) -> None:
    assert run("train", workshop.config, override, "--output", tmp_path / "run") == code
    assert complaint in capsys.readouterr().err


def test_changed_thread_count_is_reported_as_not_bit_exact(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run"]
    assert run(*words, "training.max_steps=5") == 0
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        assert run(*words, "training.max_steps=6", "--allow-change") == 0
    finally:
        torch.set_num_threads(before)
    assert f"threads changed from {before} to {before + 1}" in capsys.readouterr().err


def test_info_describes_a_run_and_its_models(
    straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(straight, tmp_path / "run")
    assert run("average", tmp_path / "run", "--last", "2") == 0
    capsys.readouterr()
    assert run("info", tmp_path / "run", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["checkpoints"] == [10, 15, 20, 25, 30]
    assert about["averages"] == {"average-2": [25, 30]}
    assert about["used by --model"] == str(tmp_path / "run/average-2")
    assert about["last validation"]["step"] == 30
    assert about["model"]["d_model"] == 16
    assert about["parameters"] == sum(
        weight.numel() for weight in Bundle.open(about["newest"]).weights().values()
    )
    assert about["state"]["position"]["epoch"] == about["last step"]["epoch"]
    assert run("info", tmp_path / "run") == 0
    shown = capsys.readouterr().out
    assert not re.search(r"[{}\[\]]|\d\.0*[1-9]\d{6}", shown), shown
    pairs = [re.fullmatch(r"( *[^ ]+(?: [^ ]+)*)(?:(  +).+)?", line) for line in shown.splitlines()]
    assert len({pair.end(2) for pair in pairs if pair and pair[2]}) == 1
    assert all(pairs)
    assert run("info", tmp_path / "run/average-2") == 0
    shown = capsys.readouterr().out
    assert "25, 30" in shown
    assert run("info", tmp_path) == 4
    assert "is not a model directory" in capsys.readouterr().err


def test_translate_rejects_a_corpus_as_a_model_by_name(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("translate", "--model", workshop.directory / "train-ids", "one") == 4
    assert "is a corpus of `transept data prepare`, not a model" in capsys.readouterr().err


def test_several_corpora_are_mixed_by_weight(workshop: Workshop, tmp_path: Path) -> None:
    ids = workshop.directory / "train-ids"
    mixed = f'data.train=[{{path="{ids}"}}, {{path="{workshop.directory / "dev-ids"}", weight=2}}]'
    assert run("train", workshop.config, mixed, "--output", tmp_path / "run") == 0
    assert read_metrics(tmp_path / "run/metrics.jsonl")[0]["pairs"] > 739


@pytest.mark.parametrize(("override", "expected"), [("0.001", True), ("none", False)])
def test_checkpoints_are_written_by_the_clock(
    workshop: Workshop, tmp_path: Path, override: str, expected: bool
) -> None:
    """Every 60 ms if set; by default at most every 15 s, which is longer than this run."""
    words = ["train", workshop.config, f"checkpoint.every_minutes={override}",
             "checkpoint.every_steps=none", "validation.every_steps=100"]  # fmt: skip
    assert run(*words, "--output", tmp_path / "run") == 0
    steps = Checkpoints(tmp_path / "run/checkpoints").steps()
    assert (len(steps) > 1) is expected
    assert steps[-1] == 30
