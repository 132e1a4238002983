"""The network of a demo, and how it is trained: two small configs, filled in. No torch here."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from transept import config
from transept.data.config import CorpusConfig
from transept.demo.plan import Plan
from transept.experiment import Experiment

MINUTES: Final = 4.0
"""What the steps of both configs fit into, on two cores."""

GRAMMAR: Final = Path(__file__).with_name("grammar.toml")
OWN: Final = Path(__file__).with_name("own.toml")


def template(plan: Plan) -> Experiment:
    """The config as its file has it."""
    return config.load(Experiment, GRAMMAR if plan.data is None else OWN)


def fill_in(
    chosen: Experiment, *, train: Path, dev: Path, vocab_size: int, seed: int, minutes: float
) -> Experiment:
    """The config with its corpora, and with everything that is counted in steps scaled."""

    def scaled(steps: int | None) -> int:
        assert steps is not None
        return max(1, round(steps * minutes / MINUTES))

    return replace(
        chosen,
        model=replace(chosen.model, vocab_size=vocab_size),
        data=replace(chosen.data, train=(CorpusConfig(path=train),), dev=dev),
        training=replace(chosen.training, max_steps=scaled(chosen.training.max_steps), seed=seed),
        validation=replace(chosen.validation, every_steps=scaled(chosen.validation.every_steps)),
        checkpoint=replace(chosen.checkpoint, every_steps=scaled(chosen.checkpoint.every_steps)),
    )
