"""`benchmarks/eole_training.py`: Eole has our network with pre-norm, and its trainer learns."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from transept import ModelConfig, Transformer

pytest.importorskip("eole")
pytest.importorskip("pyonmttok")
# Eole calls functions of pydantic that are deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CONFIG = ModelConfig(
    vocab_size=50, n_layers=2, d_model=16, d_ff=32, n_heads=2, norm="pre", decoder_start="token"
)
NAMES = {
    "source_embedding": "src_emb.embeddings",
    "target_embedding": "tgt_emb.embeddings",
    "projection": "generator",
    ".layers.": ".transformer_layers.",
    "coder.norm": "coder.layer_norm",
    "self_attention.w_o": "self_attn.final_linear",
    "source_attention.w_o": "context_attn.final_linear",
    "feed_forward.w_1": "mlp.gate_up_proj",
    "feed_forward.w_2": "mlp.down_proj",
    "residuals.0.norm": "input_layernorm",
}
NORMS = {"encoder": ["post_attention_layernorm"]}
NORMS["decoder"] = ["precontext_layernorm", *NORMS["encoder"]]


@pytest.fixture
def eole_training(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("eole_training")


def eole_weights(model: Transformer) -> dict[str, Tensor]:
    """Our weights with Eole's names."""
    theirs = {}
    for name, weight in model.state_dict().items():
        for ours, new in NAMES.items():
            name = name.replace(ours, new)
        for number, new in enumerate(NORMS.get(name.partition(".")[0], []), start=1):
            name = name.replace(f"residuals.{number}.norm", new)
        if "w_qkv" in name:
            name = name.replace("self_attention", "self_attn")
            name = name.replace("source_attention", "context_attn")
            for kind, part in zip(("query", "keys", "values"), weight.chunk(3), strict=True):
                theirs[name.replace("w_qkv", f"linear_{kind}")] = part
        else:
            theirs[name] = weight
    return theirs


def batch() -> tuple[Tensor, Tensor]:
    sources = torch.tensor([[5, 6, 7, 8, 1], [9, 10, 1, 0, 0]])
    return sources, torch.tensor([[11, 12, 13, 1], [14, 15, 1, 0]])


def test_eole_has_the_number_of_parameters_of_a_pre_norm_network(eole_training: Any) -> None:
    theirs = eole_training.EoleTrainer(CONFIG).model
    assert sum(p.numel() for p in theirs.parameters()) == Transformer(CONFIG).n_parameters()


def test_eole_with_our_weights_computes_the_same_logits_and_loss(eole_training: Any) -> None:
    torch.manual_seed(1)
    ours = Transformer(replace(CONFIG, dropout=0.0)).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        ours.target_embedding.weight[0] = 0
    trainer = eole_training.EoleTrainer(ours.config)
    missing, unexpected = trainer.model.load_state_dict(eole_weights(ours), strict=False)
    assert not unexpected
    assert all(name.endswith((".pe", "layer_scalar")) for name in missing)
    sources, targets = batch()
    begun = torch.nn.functional.pad(targets, (1, 0), value=CONFIG.bos_id)
    with torch.no_grad():
        states, _, _ = trainer.model(sources, begun, (sources != 0).sum(1))
        found = trainer.model.generator(states)
        expected = ours(sources, targets)
    real = targets != 0
    assert expected.std() > 0.1
    torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=1e-5)
    loss = torch.nn.functional.cross_entropy(expected[real], targets[real], label_smoothing=0.1)
    assert trainer.step(sources, targets) == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.parametrize("paper_dropout", [True, False])
def test_loss_of_eole_falls_when_it_repeats_a_batch(
    eole_training: Any, paper_dropout: bool
) -> None:
    torch.manual_seed(1)
    trainer = eole_training.EoleTrainer(CONFIG, paper_dropout)
    losses = torch.tensor([trainer.step(*batch()) for _ in range(100)])
    assert losses.isfinite().all()
    assert losses[-20:].mean() < losses[:20].mean()
