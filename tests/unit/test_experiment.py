"""Keys that may change when a run resumes."""

from transept import config
from transept.experiment import EXECUTION_KEYS, Experiment
from transept.model.config import ModelConfig


def test_execution_keys_are_keys_of_an_experiment() -> None:
    table = config.as_table(Experiment(model=ModelConfig(vocab_size=300)))
    assert all(key in table[part] for part, key in (name.split(".") for name in EXECUTION_KEYS))
