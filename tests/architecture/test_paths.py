"""How many files a reader must open to follow a translation, or a step of training."""

import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType

import torch
from tests.memory_corpus import MemoryCorpus

import transept
from transept import ModelConfig, Transducer, Transformer
from transept.assembly import build_update
from transept.data.batching.feed import Feed
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Position
from transept.data.config import BatchConfig
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.runtime.interrupt import StopRequest
from transept.text.training import train_tokenizer
from transept.training.batches import Batch, read_batches
from transept.training.config import TrainingConfig
from transept.training.state import Progress
from transept.training.trainer import Trainer

MOST = 20
ROOT = Path(transept.__file__).parent
NETWORK = ModelConfig(vocab_size=300, n_layers=2, d_model=16, d_ff=32, n_heads=2)


class Entered:
    """The files of the package whose functions are called within it."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> "Entered":
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            self.files.add(str(path.relative_to(ROOT)))


def test_translation_with_loaded_model_enters_few_files() -> None:
    tokenizer = train_tokenizer(["one two three four five six seven"] * 50, vocab_size=300)
    torch.manual_seed(1)
    model = Transducer([Transformer(NETWORK)], tokenizer, tokenizer)
    model.translate("one two.", raw=True)
    with Entered() as entered:
        model.translate("one two.", raw=True)
    assert "decoding/beam.py" in entered.files
    # The option `raw` is checked, which the default options are not.
    followed = entered.files - {"config.py"}
    assert len(followed) <= MOST, sorted(followed)


def test_text_for_people_adds_four_files_to_a_translation() -> None:
    model = transept.load("en-de")
    files = []
    for raw in (True, False):
        model.translate("It rains.", raw=raw)
        with Entered() as entered:
            model.translate("It rains.", raw=raw)
        files.append(entered.files)
    names = ("figures", "protection", "spans", "surface")
    assert files[1] - files[0] == {f"text/{name}.py" for name in names}


def test_training_step_enters_few_files() -> None:
    batch = BatchConfig(source_tokens=64, target_tokens=64, tile=16, max_length=16)
    experiment = Experiment(
        model=NETWORK, batch=batch, training=TrainingConfig(max_steps=3, device="cpu")
    )
    corpus = MemoryCorpus([[7, 8, 1]] * 200, [[9, 1]] * 200)
    runtime, entered = Runtime.choose("cpu"), Entered()

    def data(start: Position) -> Iterator[Batch]:
        feed = Feed(mixture=Mixture([corpus]), config=batch, seed=1, start=start)
        return second_step_watched(read_batches(feed, 0, NETWORK, runtime).__next__, entered)

    trainer = Trainer(
        update=build_update(experiment, runtime),
        data=data,
        save=lambda progress: None,
        validate=None,
        measure_quality=None,
        observers=[],
        training=experiment.training,
        validation=experiment.validation,
        checkpoint=experiment.checkpoint,
        peak_flops=1.0,
    )
    trainer.run(Progress(), StopRequest())
    assert "model/transformer.py" in entered.files
    assert len(entered.files) <= MOST, sorted(entered.files)


def second_step_watched(read: Callable[[], Batch], entered: Entered) -> Iterator[Batch]:
    for step in count(1):
        if step == 2:
            entered.__enter__()
        elif step == 3:
            entered.__exit__()
        yield read()
