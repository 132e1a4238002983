"""A reader with transept installed, and small untrained models that pages and docstrings name."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.docs.blocks import ENVIRONMENT, ROOT, Reader

from transept import ModelConfig, Transformer, config
from transept.apps.recipes import recipe
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.sentences import built_in
from transept.checkpoint import CONFIG, WEIGHTS, weights_of, write_directory
from transept.experiment import Experiment
from transept.tasks.parsing.vocabulary import vocabulary_of
from transept.text.symbols import Symbols
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

NETWORK = ModelConfig(vocab_size=400, n_layers=2, d_model=16, d_ff=16, n_heads=2)


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a process that starts commands."""
    path = tmp_path_factory.mktemp("starter") / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.docs.starter", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield path
    process.communicate()


@pytest.fixture
def new_reader(starter: Path, tmp_path: Path) -> Reader:
    """A reader in an empty directory."""
    return Reader(tmp_path, starter)


@pytest.fixture(scope="session")
def reader(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader with an untrained `runs/demo` and an untrained parser, `runs/parsing-small`."""
    reader = Reader(tmp_path_factory.mktemp("reader"), starter)
    pairs = built_in()["train"][:400]
    tokenizer = train_tokenizer((text for pair in pairs for text in pair), vocab_size=400)
    runs = reader.directory / "runs"
    demo = RecipeRun(name="demo", recipe=recipe.load("demo"), directory=runs / "demo")
    demo.checkpoints.directory.mkdir(parents=True)
    save(demo.model, NETWORK, {"tokenizer": tokenizer})
    symbols = vocabulary_of(["S", "NP", "VP"])
    parser = replace(
        NETWORK,
        vocab_size=symbols.vocab_size,
        source_vocab_size=NETWORK.vocab_size,
        tied_embeddings="two-way",
    )
    save(runs / "parsing-small", parser, {"tokenizer": tokenizer, "target_tokenizer": symbols})
    return reader


def save(
    directory: Path, network: ModelConfig, vocabularies: dict[str, Tokenizer | Symbols]
) -> None:
    """Write a model with the weights that it begins with."""
    torch.manual_seed(1)
    folders = {}
    for name, vocabulary in vocabularies.items():
        folders[name] = directory.parent / f".{directory.name}-{name}"
        folders[name].mkdir(parents=True)
        vocabulary.save(folders[name])
    write_directory(
        directory,
        tensors={WEIGHTS: weights_of(Transformer(network))},
        texts={CONFIG: config.dump(Experiment(model=network))},
        folders=folders,
        about={"step": 0},
    )
