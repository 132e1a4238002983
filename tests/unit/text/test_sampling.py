"""Random subwords of a text."""

import pickle
import random
import subprocess
import sys
from collections import Counter
from math import exp
from typing import get_args

import pytest
from sentencepiece import SentencePieceProcessor

from transept.errors import ConfigError
from transept.text.imported import ImportedTokenizer
from transept.text.sampling import (
    SubwordSampler,
    bpe_dropout,
    merged,
    sample_unigram,
    some_skipped,
)
from transept.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Kind, Tokenizer
from transept.text.training import train_tokenizer

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "ta", "vo", "si", "ber", "gen", "ung", "schö", "né"]
AWKWARD = [
    "",
    " ",
    "  two  spaces  ",
    "\t\0\u2028\ufffd\U0010ffff",
    "<s><0x0A>⁇ ▁ ▁▁",
    "中文 👩‍👩‍👧",
]

CHILD = """
import pickle, sys
sampler, texts, ids = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps(sampler.sample(texts, ids)))
"""


def sentences(n: int) -> list[str]:
    rng = random.Random(1)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(200)]
    return [" ".join(rng.choices(words, k=9)) for _ in range(n)]


@pytest.fixture(scope="module", params=get_args(Kind))
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(sentences(300), vocab_size=400, kind=request.param)


def test_samples_decode_to_the_text_and_differ(tokenizer: Tokenizer) -> None:
    sampler, texts = SubwordSampler(tokenizer, 0.1, seed=1), [*AWKWARD, *sentences(20)]
    ids = tokenizer.encode_batch(texts)
    samples = [sampler.sample(texts, ids, copy) for copy in range(4)]
    for sample in samples:
        assert [tokenizer.decode(ids) for ids in sample] == texts
        assert not {PAD_ID, EOS_ID, UNK_ID, BOS_ID} & {index for ids in sample for index in ids}
    assert len({tuple(sample[-1]) for sample in samples}) > 1


def test_samples_depend_on_seed_text_and_copy_only(tokenizer: Tokenizer) -> None:
    sampler, texts = SubwordSampler(tokenizer, 0.1, seed=1), sentences(20)
    ids = tokenizer.encode_batch(texts)
    expected = sampler.sample(texts, ids)
    assert sampler.sample(texts[::-1], ids[::-1]) == expected[::-1]
    assert sampler.sample(texts, ids, copy=1) != expected
    assert SubwordSampler(tokenizer, 0.1, seed=2).sample(texts, ids) != expected
    given = pickle.dumps((sampler, texts, ids))
    child = subprocess.run([sys.executable, "-c", CHILD], input=given, capture_output=True)
    assert pickle.loads(child.stdout) == expected


def test_bpe_without_dropout_is_the_segmentation_of_sentencepiece() -> None:
    tokenizer = train_tokenizer(sentences(300), vocab_size=400, kind="bpe")
    texts = [*AWKWARD, *sentences(100), "an unknown wörd, Kalomi."]
    ids = tokenizer.encode_batch(texts)
    assert SubwordSampler(tokenizer, 0.0, seed=1).sample(texts, ids) == ids
    model = SentencePieceProcessor(model_proto=tokenizer.model)
    scores = {tokenizer.pieces_of([n])[0]: model.get_score(n) for n in range(260, 400)}
    for word in " ".join(sentences(20)).split():
        expected = tokenizer.pieces_of(tokenizer.encode(word))
        assert bpe_dropout(f"▁{word}", scores, 0.0, random.Random(1)) == expected


def test_bpe_with_full_dropout_is_characters() -> None:
    scores = {"ab": 0.0, "abc": -1.0}
    assert bpe_dropout("abc", scores, 0.0, random.Random(1)) == ["abc"]
    assert bpe_dropout("abc", scores, 1.0, random.Random(1)) == ["a", "b", "c"]


def test_bpe_segmentations_have_their_probabilities() -> None:
    """The best of the merges that are not skipped is made, until all are skipped."""
    scores, p = {"ab": 0.0, "bc": -1.0}, 0.3
    draw = random.Random(1)
    found = Counter("|".join(bpe_dropout("abc", scores, p, draw)) for _ in range(10_000))
    expected = {"ab|c": 1 - p, "a|bc": p * (1 - p), "a|b|c": p * p}
    assert {text: n / 10_000 for text, n in found.items()} == pytest.approx(expected, abs=0.02)


def test_bpe_segmentations_with_a_skipped_merge_have_their_probabilities() -> None:
    p, draw = 0.3, random.Random(1)
    for scores, n_merges, expected in (
        ({"ab": 0.0, "bc": -1.0}, 1, {"a|bc": 1 - p, "a|b|c": p}),
        ({"ab": 0.0, "abc": -1.0}, 2, {"a|b|c": 1 / (2 - p), "ab|c": (1 - p) / (2 - p)}),
    ):
        drawn = (merged("abc", scores, some_skipped(n_merges, p, draw)) for _ in range(10_000))
        found = Counter(map("|".join, drawn))
        assert {text: n / 10_000 for text, n in found.items()} == pytest.approx(expected, abs=0.02)


def test_most_words_keep_their_subwords_with_bpe_dropout() -> None:
    tokenizer = train_tokenizer(sentences(300), vocab_size=400, kind="bpe")
    texts, p = sentences(300), 0.1
    ids = tokenizer.encode_batch(texts)
    model = SentencePieceProcessor(model_proto=tokenizer.model)
    scores = {tokenizer.pieces_of([n])[0]: model.get_score(n) for n in range(260, 400)}
    draw, words = random.Random(1), " ".join(texts).split()
    n_subwords = sum(len(bpe_dropout(f"▁{word}", scores, p, draw)) for word in words)
    sampled = sum(map(len, SubwordSampler(tokenizer, p, seed=1).sample(texts, ids)))
    # Five standard deviations: the words are 200, each with 16 drawn segmentations.
    assert sum(map(len, ids)) < sampled == pytest.approx(n_subwords, rel=0.05)


def test_unigram_segmentations_have_their_probabilities() -> None:
    scores = {"a": -1.0, "b": -2.0, "ab": -2.0, "ba": -1.5}
    weights = {
        ("a", "b", "a"): exp(0.5 * -4), ("ab", "a"): exp(0.5 * -3), ("a", "ba"): exp(0.5 * -2.5)
    }  # fmt: skip
    chance, n = random.Random(1), 20_000
    found = Counter(tuple(sample_unigram("aba", scores, 0.5, chance)) for _ in range(n))
    assert found.keys() == weights.keys()
    for segmentation, weight in weights.items():
        expected = weight / sum(weights.values())
        # Five standard deviations of a share of n draws are at most 0.018.
        assert found[segmentation] / n == pytest.approx(expected, abs=0.02)


def test_vocabulary_of_another_program_is_rejected() -> None:
    imported = ImportedTokenizer(b"", ["<pad>", "</s>", "<unk>", "hello"])
    with pytest.raises(ConfigError, match="subword_dropout: is not supported"):
        SubwordSampler(imported, 0.1, seed=1)
