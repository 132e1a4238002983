"""Translates the development set with the current weights, to measure BLEU and chrF."""

import copy
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from transept.data.shards import Corpus
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.errors import ConfigError, Problem, TranseptError
from transept.gateway import engines
from transept.progress import no_progress
from transept.text.symbols import load_vocabulary
from transept.text.tokenizer import Tokenizer
from transept.training.config import ValidationConfig
from transept.training.quality import Quality, evenly_spaced
from transept.training.update import Update

KEY = "validation.bleu_every_steps"
NOT_A_CHARACTER = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class DevelopmentSentences:
    """The sentences of the development set that are translated."""

    inputs: list[list[int]]
    """The token ids of each source sentence, end symbol included."""
    sources: list[str]
    references: list[str]
    tokenizers: tuple[Tokenizer, Tokenizer]
    settings: ValidationConfig

    @classmethod
    def of(cls, dev: Corpus | None, settings: ValidationConfig) -> "DevelopmentSentences | None":
        """Choose the sentences, and decode their text from the ids, which is exact.

        None if the config does not ask for translations.
        """
        if settings.bleu_every_steps is None:
            return None
        if dev is None:
            raise ConfigError([Problem(KEY, "needs a development set; set data.dev, or omit it")])
        loaded = load_vocabulary(dev.source_tokenizer), load_vocabulary(dev.target_tokenizer)
        source, target = loaded
        if not isinstance(source, Tokenizer) or not isinstance(target, Tokenizer):
            what = f"needs a development set of text, and {dev.directory} has trees; omit it"
            raise ConfigError([Problem(KEY, what)])
        chosen = [*evenly_spaced(settings.bleu_sentences or len(dev), len(dev))]
        inputs = [dev.source(index).tolist() for index in chosen]
        return cls(
            inputs,
            [source.decode(ids) for ids in inputs],
            [target.decode(dev.target(index).tolist()) for index in chosen],
            (source, target),
            settings,
        )

    def measure(self, update: Update) -> Quality:
        """Translate the sentences with the weights of a run, and score the translations."""
        begin = time.monotonic()
        try:
            outputs = self._translate(update)
        except torch.OutOfMemoryError as error:
            raise TranseptError(
                "the development set cannot be translated: the device has too little free memory. "
                f"Make batch.micro_batches larger or set {KEY}=none, then resume"
            ) from error
        if update.runtime.device.type == "cuda":
            torch.cuda.empty_cache()
        seconds, n_samples = time.monotonic() - begin, self.settings.samples
        return Quality.of(outputs, self.sources, self.references, seconds, n_samples)

    def _translate(self, update: Update) -> list[str]:
        # A copy, which is freed at the end: an engine sets a network to evaluation mode, and keeps
        # prepared weights for as long as the network exists.
        with update.averaged():
            network = copy.deepcopy(update.model)
        engine = engines().choose("auto", [network], self.tokenizers, ["fp32"])
        search = SearchConfig(beam_size=self.settings.bleu_beam_size)
        config = network.config
        longest = config.max_positions if config.positions == "learned" else sys.maxsize
        inputs = [Input(ids, min(search.max_length(len(ids)), longest)) for ids in self.inputs]
        found = engine.search(inputs, search, no_progress)
        _, target = self.tokenizers
        # Bytes that are not a character are dropped, as `transept translate` does.
        return [target.decode(best.ids).replace(NOT_A_CHARACTER, "") for best, *_ in found]


def quality_check(
    sentences: DevelopmentSentences | None, update: Update
) -> Callable[[], Quality] | None:
    """Return a function that translates these sentences and scores the translations.

    Only rank 0 translates, so that the scores do not depend on the number of ranks.
    """
    if sentences is None:
        return None
    world = update.runtime.world

    def check() -> Quality:
        world.pulse.at("validating")
        world.pulse.rest()  # the other ranks wait as long as it takes
        return Quality(**world.from_leader(lambda: asdict(sentences.measure(update))))

    return check
