"""`benchmarks/marian_npz.py`: Marian's files have the weights of the network."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.errors import ConfigError
from transept.formats.foreign import build, interleaved, permuted
from transept.formats.marian_reader import read_npz

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
CONFIG = ModelConfig(
    vocab_size=30, n_layers=3, n_decoder_layers=2, d_model=16, d_ff=24, n_heads=2,
    decoder_start="zero",
)  # fmt: skip


@pytest.fixture(scope="module")
def marian_npz() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("marian_npz")


def random_network(config: ModelConfig) -> Transformer:
    torch.manual_seed(1)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("tied", ["three-way", "two-way", "none"])
def test_network_is_the_same_after_writing_and_reading(
    marian_npz: Any, tmp_path: Path, tied: Any
) -> None:
    ours = random_network(replace(CONFIG, tied_embeddings=tied))
    marian_npz.write_model(ours, tmp_path)
    vocabulary = tmp_path / marian_npz.VOCABULARY
    foreign = read_npz(tmp_path / marian_npz.MODEL, (vocabulary, vocabulary), (b"", b""))
    # The paper's positions instead of Marian's, which have other frequencies.
    foreign = permuted(replace(foreign, positions=None), interleaved(CONFIG.d_model))
    theirs = build(foreign).eval()
    # The reader adds an entry for padding, so the other ids have new places.
    place = torch.tensor([foreign.target.our_id(token) for token in range(CONFIG.vocab_size)])
    source, target = (
        torch.tensor([[5, 6, 2, 7, 1], [8, 3, 9, 10, 1]]),
        torch.tensor([[9, 1], [4, 1]]),
    )
    expected = ours(source, target)[..., 1:]
    found = theirs(place[source], place[target])[..., place[1:]]
    assert expected.std() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_padding_is_never_an_output(marian_npz: Any) -> None:
    bias = marian_npz.arrays(random_network(CONFIG))["decoder_ff_logit_out_b"]
    assert bias.shape == (1, CONFIG.vocab_size)
    assert bias[0, CONFIG.pad_id] <= -1e4


def test_settings_have_the_sizes_of_the_network(marian_npz: Any) -> None:
    settings = marian_npz.settings(CONFIG)
    assert settings["enc-depth"] == 3
    assert settings["dec-depth"] == 2
    assert settings["transformer-heads"] == 2
    assert settings["dim-vocabs"] == [30, 30]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"norm": "pre"}, "norm"),
        ({"decoder_start": "token"}, "decoder_start"),
        ({"source_vocab_size": 40, "tied_embeddings": "none"}, "source_vocab_size"),
    ],
)
def test_network_that_differs_from_marian_is_rejected(
    marian_npz: Any, tmp_path: Path, change: Any, key: str
) -> None:
    with pytest.raises(ConfigError, match=key):
        marian_npz.write_model(Transformer(replace(CONFIG, **change)), tmp_path)
    assert not list(tmp_path.iterdir())
