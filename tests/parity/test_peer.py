"""The baseline of our experiments: our network with MarianMT's weights computes the same."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integration.kitchen import open_kitchen

from transept import ModelConfig, Transformer
from transept.checkpoint import load_weights

pytest.importorskip("transformers")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def marian(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("marian")


@pytest.mark.slow
def test_transformer_with_marian_weights_matches_marian(marian: Any) -> None:
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=50, n_layers=2, d_model=16, d_ff=32, n_heads=2)
    theirs = marian.new_marian(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    ours = Transformer(marian.like_marian(config)).eval()
    load_weights(ours, marian.from_marian(theirs.state_dict(), config), Path("marian"))
    source = torch.tensor([[5, 6, 7, 1], [8, 1, 0, 0]])
    target = torch.tensor([[9, 10, 1], [11, 1, 0]])
    begin = torch.cat([torch.full((2, 1), config.bos_id), target[:, :-1]], dim=1)
    expected = theirs(
        input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=begin
    ).logits
    found = ours(source, target)
    assert expected.std() > 0.1
    real = target != 0
    torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_baseline_experiment_runs_with_tiny_model(tmp_path: Path) -> None:
    kitchen = open_kitchen(tmp_path / "kitchen")
    work, baseline = tmp_path / "work", tmp_path / "baseline"
    assert kitchen.cook(work, "--data", kitchen.data, "--until", "prepare") == 0
    words = [sys.executable, BENCHMARKS / "peer_experiment.py", kitchen.recipe]
    words += ["--prepared", work, "--work", baseline, "--target-tokens", "9000"]
    paused = subprocess.run([*map(str, words), "--pause-after", "0.001"], check=False)
    assert paused.returncode == 75
    subprocess.run(list(map(str, words)), check=True)
    record = json.loads((baseline / "record.json").read_bytes())
    trained = record["stages"]["train"]["results"]
    assert record["system"] == "HF MarianMT"
    assert 9000 <= trained["target_tokens"] < 9600
    assert len(record["curve"]) > 10
    assert set(record["stages"]["score"]["results"]["tests"]) == {"first", "second"}
