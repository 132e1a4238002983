"""What a user waits for before the first translation: torch, and little else."""

import subprocess
import sys
from pathlib import Path

from transept import ModelConfig, Transformer
from transept.checkpoint import CONFIG, WEIGHTS, weights_of, write_directory
from transept.text.training import train_tokenizer

CODE = """
import sys, torch
unavoidable = set(sys.modules)
from transept.cli.app import main
try:
    main(["translate", "--model", sys.argv[1], "--device", "cpu", "one two"])
except SystemExit as end:
    assert end.code == 0, end.code
print(*(set(sys.modules) - unavoidable), file=sys.stderr)
"""
NEEDLESS = {
    *("triton", "sympy", "torch._dynamo", "torch._inductor"),
    *("torch.fx.experimental.symbolic_shapes", "torch.export"),
    *("torch.distributed.tensor", "torch.optim", "tensorboard", "matplotlib"),
    *("sacrebleu", "ctranslate2", "rich.progress", "rich.live", "starlette"),
    *(
        "transept.assembly",
        "transept.training.update",
        "transept.evaluation",
        "transept.apps.serve",
    ),
    *("transept.engines.kernels", "transept.apps.visualize", "transept.apps.recipes.demo"),
}
CONFIG_TEXT = """
[model]
vocab_size = 300
n_layers = 1
d_model = 16
d_ff = 32
n_heads = 2

[data]
train = [{path = "nowhere"}]
"""


def test_translating_on_a_cpu_imports_no_compiler_and_no_trainer(tmp_path: Path) -> None:
    train_tokenizer(["one two three four five six seven"] * 50, vocab_size=300).save(
        tmp_path / "vocabulary"
    )
    model = Transformer(ModelConfig(vocab_size=300, n_layers=1, d_model=16, d_ff=32, n_heads=2))
    write_directory(
        tmp_path / "model",
        tensors={WEIGHTS: weights_of(model)},
        texts={CONFIG: CONFIG_TEXT},
        folders={"tokenizer": tmp_path / "vocabulary"},
        about={},
    )
    words = [sys.executable, "-c", CODE, str(tmp_path / "model")]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    imported = set(result.stderr.split())
    assert "transept.api.models" in imported
    assert not {name for name in imported if {name, *_parents(name)} & NEEDLESS}


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]
