"""An experiment's corpora, opened and held against each other and the config."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from transept.checkpoint import TARGET_TOKENIZER, TOKENIZER
from transept.data.batching.mixture import Mixture
from transept.data.shards import Corpus
from transept.errors import ConfigError, Problem, VocabularyError
from transept.experiment import Experiment


@dataclass(frozen=True, slots=True)
class Corpora:
    """The opened corpora of an experiment."""

    train: Mixture
    dev: Corpus | None
    tokenizers: dict[str, Path]
    """What a bundle copies: `tokenizer`, and `target_tokenizer` where it is another one."""
    vocab_sizes: dict[str, int]
    """Of `source` and `target`."""
    hashes: dict[str, str]
    """Of all, by their directories."""

    @classmethod
    def open(cls, experiment: Experiment, verify: bool = True) -> "Corpora":
        """Open them, and check that they were made for one another; and every byte, if asked to."""
        entries = experiment.data.train
        if not entries:
            what = "is empty: name a corpus that `transept data prepare` wrote"
            raise ConfigError([Problem("data.train", what)])
        # Reading it all costs seconds for the largest corpora, and training will read it anyway.
        corpora = [Corpus.open(entry.path, verify=verify) for entry in entries]
        named = experiment.data.dev
        dev = None if named is None else Corpus.open(named, verify=verify)
        first, every = corpora[0], [*corpora, *([dev] if dev else [])]
        for corpus in every:
            _check_vocabularies(corpus, first)
        tokenizers = {TOKENIZER: first.source_tokenizer}
        if first.target_tokenizer != first.source_tokenizer:
            tokenizers[TARGET_TOKENIZER] = first.target_tokenizer
        mixture = Mixture(corpora, [entry.weight for entry in entries])
        sizes = {side: first.manifest.side(side).vocab_size for side in ("source", "target")}
        hashes = {str(corpus.directory): corpus.hash for corpus in every}
        return cls(mixture, dev, tokenizers, sizes, hashes)

    def fit(self, experiment: Experiment) -> Experiment:
        """The experiment with the sizes of these vocabularies, which must be those it names."""
        model = experiment.model.with_vocabularies(**self.vocab_sizes)
        named = {"target": model.vocab_size, "source": model.source_vocab_size or model.vocab_size}
        for side, size in named.items():
            there = self.vocab_sizes[side]
            if there != size:
                key = "model.vocab_size" if side == "target" else "model.source_vocab_size"
                where = experiment.data.train[0].path
                what = f"{size} is not the {there} of {where}; set {key}={there}"
                raise ConfigError([Problem(key, what)])
        return dataclasses.replace(experiment, model=model)


def _check_vocabularies(corpus: Corpus, first: Corpus) -> None:
    ours, theirs = corpus.manifest.settings, first.manifest.settings
    if (ours.source_tokenizer, ours.target_tokenizer) != (
        theirs.source_tokenizer,
        theirs.target_tokenizer,
    ):
        raise VocabularyError(
            f"{corpus.directory} and {first.directory} were prepared with different tokenizers: "
            "prepare them with the same one"
        )
