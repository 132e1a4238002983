"""Shortlists: learning from a corpus, and decoding with them."""

from pathlib import Path

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.engines import shortlist as shortlists
from transept.engines.native.network import IncrementalDecoder
from transept.engines.shortlist import Shortlist, learn
from transept.errors import DataError

EOS = 1


def cipher(n_pairs: int) -> list[tuple[list[int], list[int]]]:
    """Source token s becomes s + 10; 20 is in every target."""
    torch.manual_seed(0)
    sources = torch.randint(2, 10, (n_pairs, 4)).tolist()
    return [([*s, EOS], [*(token + 10 for token in s), 20, EOS]) for s in sources]


@pytest.mark.parametrize("chunk", [shortlists.CHUNK, 50], ids=["one chunk", "several chunks"])
def test_shortlist_contains_cooccurring_tokens(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlists, "CHUNK", chunk)
    learned = learn(cipher(200), 12, n_likely=1, n_always=2, keep=[EOS])
    assert learned.likely[2:10, 0].tolist() == list(range(12, 20))
    assert learned.tokens(torch.tensor([[3, 5], [5, 1]])).tolist() == [1, 13, 15, 20]


def test_shortlist_round_trips_through_file(tmp_path: Path) -> None:
    learned = learn(cipher(50), 12, keep=[EOS])
    learned.save(tmp_path / "shortlist.safetensors", ("en", "de"))
    again = Shortlist.load(tmp_path / "shortlist.safetensors", ("en", "de"))
    assert torch.equal(again.likely, learned.likely)
    assert torch.equal(again.always, learned.always)


def test_shortlist_of_other_vocabulary_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "shortlist.safetensors"
    learn(cipher(50), 12, keep=[EOS]).save(file, ("en", "de"))
    for names, side in ((("fr", "de"), "source"), (("en", "fr"), "target")):
        with pytest.raises(DataError, match=rf"not made for the model's {side} vocabulary"):
            Shortlist.load(file, names)
    file.write_bytes(b"something else")
    with pytest.raises(DataError, match="is not a shortlist"):
        Shortlist.load(file, ("en", "de"))


def test_learning_shortlist_without_pairs_raises() -> None:
    with pytest.raises(DataError, match="without sentence pairs"):
        learn([], 12)


@pytest.mark.parametrize("output_bias", [False, True])
def test_decoder_with_shortlist_gives_other_tokens_probability_0(output_bias: bool) -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=30, n_layers=2, d_model=16, d_ff=32, n_heads=2, output_bias=output_bias
    )
    model = Transformer(config).eval()
    memory = model.encode(torch.tensor([[5, 6, 1], [7, 8, 1]]))
    chosen = torch.tensor([1, 4, 9, 17, 28])
    for tokens in (None, torch.tensor([4, 9])):
        full, short = IncrementalDecoder(model, memory), IncrementalDecoder(model, memory, chosen)
        if tokens is not None:
            full(None), short(None)
        expected = torch.full((2, 30), -torch.inf)
        expected[:, chosen] = full(tokens)[:, chosen].log_softmax(dim=1)
        torch.testing.assert_close(short(tokens), expected)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_shortlist_of_whole_vocabulary_changes_nothing(beam_size: int) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(vocab_size=30, n_layers=2, d_model=16, d_ff=32, n_heads=2))
    memory = model.eval().encode(torch.tensor([[5, 6, 1], [7, 8, 1]]))
    config = SearchConfig(beam_size=beam_size)
    whole, short = (
        search(IncrementalDecoder(model, memory, chosen), [12, 12], config, EOS)
        for chosen in (None, torch.arange(1, 30))
    )
    assert [best.ids for best, *_ in whole] == [best.ids for best, *_ in short]
