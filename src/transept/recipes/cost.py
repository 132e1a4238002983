"""What arithmetic a training takes: counted, and as the paper estimates it."""

import numpy as np
from numpy.typing import NDArray

from transept.data.config import CorpusConfig
from transept.data.shards import Corpus
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.training.flops import training_flops


def flops_per_target_token(experiment: Experiment) -> float:
    """Arithmetic that training needs for a target token, on average over an epoch."""
    flops = tokens = 0.0
    for entry in experiment.data.train:
        sources, targets = _lengths(entry, experiment.batch.max_length)
        flops += entry.weight * training_flops(experiment.model, sources, targets)
        tokens += entry.weight * int(targets.sum())
    return flops / max(1.0, tokens)


def _lengths(entry: CorpusConfig, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    corpus = Corpus.open(entry.path)
    source, target = corpus.source_lengths, corpus.target_lengths
    fitting = (source <= longest) & (target <= longest)
    return source[fitting].astype(np.int64), target[fitting].astype(np.int64)


def sustained_single_precision(device: str) -> float:
    """FLOP/s of large matrices in single precision, measured: the paper's estimate of a GPU."""
    return Runtime.choose(device, "fp32").matrix_peak()
