"""What makes two experiments one."""

from transept import config
from transept.experiment import MEANS, Experiment
from transept.model.config import ModelConfig


def test_every_means_is_a_key_of_an_experiment() -> None:
    table = config.as_table(Experiment(model=ModelConfig(vocab_size=300)))
    assert all(key in table[part] for part, key in (name.split(".") for name in MEANS))
