from pathlib import Path

import numpy as np
import pytest

from transept.data.preparation.formats import Tsv
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Corpus, SideSummary
from transept.data.statistics import samples, side_statistics
from transept.errors import VocabularyError
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, tokenizer_directory: Path) -> Corpus:
    directory = tmp_path_factory.mktemp("corpus")
    lines = [f"{'the house ' * (1 + i % 9)}{i}\t{'das Haus ' * (1 + i % 9)}{i}" for i in range(200)]
    (directory / "x.tsv").write_text("\n".join(lines) + "\n")
    output = directory / "corpus"
    prepare(
        Preparation(
            inputs=(Tsv(directory / "x.tsv"),), tokenizer=tokenizer_directory, output=output
        ),
        workers=0,
    )
    return Corpus.open(output)


def test_side_statistics_are_correct() -> None:
    lengths = np.array([2, 3, 4, 5, 100])
    summary = SideSummary(tokens=114, unknown=11, vocab_size=10, dtype="uint16")
    figures = side_statistics(lengths, summary)
    assert (figures.shortest, figures.longest, figures.mean) == (2, 100, 22.8)
    assert figures.percentiles == {50: 4, 75: 5, 90: 5, 95: 5, 99: 5}
    assert figures.unknown_rate == 11 / 109


def test_samples_are_text_and_depend_only_on_the_seed(corpus: Corpus, tokenizer: Tokenizer) -> None:
    both = (tokenizer, tokenizer)
    drawn = samples(corpus, 4, 1, both)
    assert drawn == samples(corpus, 4, 1, both)
    assert drawn != samples(corpus, 4, 2, both)
    assert [sample.index for sample in drawn] == sorted(sample.index for sample in drawn)
    assert all(sample.source.startswith("the house") for sample in drawn)
    assert len(samples(corpus, 10**6, 0, both)) == len(corpus)


def test_samples_reject_another_tokenizer(corpus: Corpus, tokenizer: Tokenizer) -> None:
    other = train_tokenizer(["other words than those"] * 5, vocab_size=290)
    with pytest.raises(VocabularyError, match="the target was prepared with another tokenizer"):
        samples(corpus, 1, 0, (tokenizer, other))
