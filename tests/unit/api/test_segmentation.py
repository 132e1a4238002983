"""The likeliest segmentation of a text, and scores of it."""

from collections.abc import Iterator

import pytest
import torch
from tests.unit.api.conftest import network

from transept import Transducer
from transept.api.perplexity import measure_perplexities
from transept.api.segmentation import SegmentationConstraint
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.native.engine import NativeEngine
from transept.engines.shortlist import Shortlist
from transept.errors import ConfigError
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID, Tokenizer

SOURCE, TARGET = "one two", "so be"


def segmentations(tokenizer: Tokenizer, text: bytes, at: int = 0) -> Iterator[list[int]]:
    """All sequences of tokens with these bytes."""
    if at == len(text):
        yield [EOS_ID]
    for token, end in tokenizer.tokens_at(text, at):
        yield from ([token, *rest] for rest in segmentations(tokenizer, text, end))


def all_segmentations(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """With the space that the tokenizer puts before a text, and without."""
    return [
        ids
        for start in (f" {text}", text)
        for ids in segmentations(tokenizer, start.encode())
        if tokenizer.decode(ids) == text
    ]


def peaked(seed: int, tokenizer: Tokenizer) -> Transducer:
    """A transducer whose network prefers some tokens to others by many nats."""
    model = network(seed)
    with torch.no_grad():
        model.projection.weight.mul_(4)
    return Transducer([model], tokenizer, tokenizer, max_source_length=40)


def test_tokens_at_returns_every_token_at_an_offset(tokenizer: Tokenizer) -> None:
    text = b" the end"
    for start in range(len(text)):
        found = tokenizer.tokens_at(text, start)
        expected = {
            (index, start + len(surface))
            for index, surface in enumerate(tokenizer.surfaces(range(tokenizer.vocab_size)))
            if surface and text.startswith(surface, start)
        }
        assert len(found) == len(expected)
        assert set(found) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_likeliest_of_all_segmentations(
    tokenizer: Tokenizer, seed: int
) -> None:
    transducer = peaked(seed, tokenizer)
    source = tokenizer.framed(tokenizer.encode(SOURCE))
    every = all_segmentations(tokenizer, TARGET)
    assert len(every) > 20
    log_p = transducer.networks.log_probabilities([(source, ids) for ids in every])
    ((best, *_),) = transducer.native.search(
        [Input(source, 20)],
        SearchConfig(beam_size=200, length_penalty=0.0),
        no_progress,
        lambda batch: SegmentationConstraint(tokenizer, [f" {TARGET}".encode()] * len(batch)),
    )
    assert best.finished
    assert tokenizer.decode(best.ids) == TARGET
    assert best.log_probability == pytest.approx(max(map(sum, log_p)), abs=1e-3)


def test_score_is_that_of_the_likelier_segmentation(tokenizer: Tokenizer) -> None:
    gains = []
    for seed in range(8):
        transducer = peaked(seed, tokenizer)
        likeliest = transducer.score(SOURCE, TARGET)
        canonical = transducer.score(SOURCE, TARGET, segmentation="canonical")
        assert canonical.tokens == (*tokenizer.pieces(TARGET), "</s>")
        for pair in (likeliest, canonical):
            assert sum(pair.token_log_probabilities) == pair.log_probability
            assert tokenizer.decode_pieces(pair.tokens[:-1]) == TARGET
        gains.append(likeliest.log_probability - canonical.log_probability)
        assert (gains[-1] > 0) == (likeliest.tokens != canonical.tokens)
    assert min(gains) >= 0
    assert max(gains) > 0.1


def test_perplexity_is_that_of_the_canonical_segmentation(tokenizer: Tokenizer) -> None:
    per_token, _ = measure_perplexities(peaked(0, tokenizer), [SOURCE], [TARGET])
    assert per_token.units == len(tokenizer.encode(TARGET)) + 1


def test_score_does_not_use_the_shortlist(tokenizer: Tokenizer) -> None:
    model = peaked(0, tokenizer).model
    nothing = torch.full((tokenizer.vocab_size, 1), EOS_ID)
    engine = NativeEngine([model], Shortlist(nothing, torch.tensor([EOS_ID])))
    limited = Transducer([model], tokenizer, tokenizer, engine=engine)
    free = Transducer([model], tokenizer, tokenizer)
    assert limited.score(SOURCE, TARGET) == free.score(SOURCE, TARGET)


def test_score_rejects_an_unknown_segmentation(transducer: Transducer) -> None:
    with pytest.raises(ConfigError, match="segmentation: 'best' is not one of 'likeliest', 'cano"):
        transducer.score("one", "two", segmentation="best")  # type: ignore[call-overload]
