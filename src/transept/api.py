"""A trained model, ready to use: `transept.load(path).translate([...])`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from transept import config
from transept.assembly import CHECKPOINTS
from transept.checkpoint import CONFIG, Bundle, Checkpoints, load_weights
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.errors import CheckpointError
from transept.experiment import Experiment
from transept.model.incremental import IncrementalDecoder
from transept.model.transformer import Transformer
from transept.text.tokenizer import EOS_ID, PAD_ID, Tokenizer

BATCH_TOKENS = 4096
"""Source tokens decoded together, times the beam size."""


@dataclass(frozen=True, slots=True)
class Output:
    """One text that the model gives."""

    text: str
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y)."""
    log_probability: float
    """log P(Y|X)."""
    finished: bool
    """Whether it came to an end by itself, and not at the maximum length."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What the model makes of one text: its best output, and the others that were asked for."""

    source: str
    outputs: tuple[Output, ...]

    @property
    def text(self) -> str:
        """The best output."""
        return self.outputs[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.outputs[0].score


class Transducer:
    """A network with its vocabularies: sequences of words in, sequences of words out."""

    def __init__(
        self, model: Transformer, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer
    ) -> None:
        self.model = model.eval()
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        n_best: int = 1,
        max_length_extra: int = 50,
    ) -> list[Translation]:
        """Translate each text as one sentence. An empty one stays empty.

        What comes out for a text does not depend on the others.

        Example:
            >>> model = transept.load("runs/base/average-5")          # doctest: +SKIP
            >>> model.translate(["Good morning."])[0].text            # doctest: +SKIP
            'Guten Morgen.'
        """
        settings = SearchConfig(
            beam_size=beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            max_length_extra=max_length_extra,
        )
        sources = [[*ids, EOS_ID] for ids in self.source_tokenizer.encode_batch(texts)]
        results = [Translation(text, (NOTHING,)) for text in texts]
        for batch in _batches(sources, BATCH_TOKENS // beam_size):
            found = self._search([sources[index] for index in batch], settings)
            for index, hypotheses in zip(batch, found, strict=True):
                outputs = tuple(map(self._output, hypotheses))
                results[index] = Translation(texts[index], outputs)
        return results

    def _search(
        self, sources: Sequence[Sequence[int]], settings: SearchConfig
    ) -> list[list[Hypothesis]]:
        width = max(map(len, sources))
        padded = torch.tensor([[*ids, *[PAD_ID] * (width - len(ids))] for ids in sources])
        with torch.inference_mode():
            memory = self.model.encode(padded)
            lengths = [settings.max_length(len(ids)) for ids in sources]
            return search(IncrementalDecoder(self.model, memory), lengths, settings, EOS_ID)

    def _output(self, hypothesis: Hypothesis) -> Output:
        return Output(
            self.target_tokenizer.decode(hypothesis.ids),
            hypothesis.score,
            hypothesis.log_probability,
            hypothesis.finished,
        )


NOTHING = Output("", 0.0, 0.0, True)
"""What becomes of a text without a token."""


def load(path: Path | str) -> Transducer:
    """A model from its directory: a bundle, a checkpoint, or a run (its newest average or best)."""
    bundle = Bundle.open(_model_directory(Path(path)))
    experiment = config.load(Experiment, bundle.directory / CONFIG)
    model = Transformer.uninitialised(experiment.model)
    load_weights(model, bundle.weights(), bundle.directory)
    source = Tokenizer.load(bundle.directory / "tokenizer")
    own = bundle.directory / "target_tokenizer"
    target = Tokenizer.load(own) if own.exists() else source
    if target.vocab_size != experiment.model.vocab_size:
        raise CheckpointError(
            f"{bundle.directory}: its tokenizer has {target.vocab_size} entries and its network "
            f"{experiment.model.vocab_size}: they are not of one model"
        )
    return Transducer(model, source, target)


def _model_directory(path: Path) -> Path:
    """Of a run, the average over most checkpoints, else the best checkpoint, else the newest."""
    if not (path / CHECKPOINTS).is_dir():
        return path
    averages = sorted(path.glob("average-*"), key=lambda one: one.stat().st_mtime)
    if averages:
        return averages[-1]
    newest = Checkpoints(path / CHECKPOINTS).newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no whole checkpoint yet; train it first")
    best = newest.state()["best_step"]
    there = best is not None and Checkpoints(path / CHECKPOINTS).path(best).exists()
    return Checkpoints(path / CHECKPOINTS).path(best) if there else newest.directory


def _batches(sources: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """Indices of sources that have a token, of similar length together, so many tokens a batch."""
    order = sorted(
        (i for i, ids in enumerate(sources) if len(ids) > 1), key=lambda i: -len(sources[i])
    )
    batch: list[int] = []
    for index in order:
        # Longest first: the first of a batch sets the width of all its rows.
        if batch and (len(batch) + 1) * len(sources[batch[0]]) > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
