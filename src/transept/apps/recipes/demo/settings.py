"""The network of a demo, and how it is trained: two small configs, filled in. No torch here."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from transept import config
from transept.apps.recipes.demo.plan import DemoPlan
from transept.data.config import CorpusConfig
from transept.experiment import Experiment

GRAMMAR: Final = Path(__file__).with_name("grammar.toml")
OWN: Final = Path(__file__).with_name("own.toml")


def template(plan: DemoPlan) -> Experiment:
    """The config as its file has it."""
    return config.load(Experiment, GRAMMAR if plan.data is None else OWN)


def fill_in(
    chosen: Experiment, *, train: Path, dev: Path, vocab_size: int, seed: int, steps: int
) -> Experiment:
    """The config with its corpora, its steps, and the intervals between them in proportion."""

    def scaled(interval: int | None) -> int:
        assert interval is not None
        return max(1, round(interval * steps / chosen.training.max_steps))

    return replace(
        chosen,
        model=replace(chosen.model, vocab_size=vocab_size),
        data=replace(chosen.data, train=(CorpusConfig(path=train),), dev=dev),
        training=replace(chosen.training, max_steps=steps, seed=seed),
        validation=replace(chosen.validation, every_steps=scaled(chosen.validation.every_steps)),
        checkpoint=replace(chosen.checkpoint, every_steps=scaled(chosen.checkpoint.every_steps)),
    )
