"""The stages of a demo, in their order. What is done is not done again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transept.api.transducer import Transducer
from transept.apps.recipes.demo import settings, texts
from transept.apps.recipes.demo.plan import DemoPlan
from transept.apps.recipes.demo.results import Results, SampleTranslation, measure
from transept.apps.recipes.work import Done, Trained, Work
from transept.checkpoint import CHECKPOINTS, WEIGHTS, Checkpoints
from transept.data.shards import Manifest
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.runtime.storage import digest, write_file
from transept.text.files import read_text
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer
from transept.training.observers import Observer
from transept.training.trainer import Outcome

PREPARED: Final = ("train", "dev")
AVERAGED: Final = 20
SMALLEST_VOCABULARY: Final = 300


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo in its directory.

    demo.toml     what it is about
    text/         train, dev and test, in both languages
    vocabulary/   the tokenizer
    data/         train and dev as ids
    run/          the training: config, metrics, checkpoints, and the average of the last
    test.de       how text/test.en was translated
    scores.json   what that is worth
    """

    directory: Path
    plan: DemoPlan
    steps: int | None = None
    """Train for this number of steps. None: for all steps of the config."""

    def begin(self) -> None:
        """Claim the directory."""
        self.plan.keep_in(self.directory)

    # --- from text to ids ------------------------------------------------------------------------

    def make_text(self) -> Done:
        """Write the built-in sentences, or those of custom files, as plain text."""
        already = self.text.exists()
        if not already:
            texts.write(texts.read(self.plan), self.text, self.plan)
        train, dev, test = (len(self.lines(split)[0]) for split in texts.SPLITS)
        origin = "of a small grammar" if self.plan.data is None else f"of {self.plan.data}"
        what = f"{train:,} sentence pairs {origin}, dev {dev:,}, test {test:,}"
        if self.plan.data is not None and (missing := texts.missing_splits(self.plan)):
            what += f"; {' and '.join(missing)} held out from train"
        return Done(what, already)

    def learn_vocabulary(self) -> Done:
        """Learn a joint vocabulary: as large as wanted, or as the text can fill."""
        return self.work.learn_vocabulary(self._learn)

    def _learn(self) -> Tokenizer:
        sides = self.lines("train")
        lines, size = [*sides[0], *sides[1]], self._template.model.vocab_size
        while True:
            try:
                return train_tokenizer(lines, vocab_size=size)
            except ConfigError:
                size = size * 3 // 4
                if size < SMALLEST_VOCABULARY:
                    raise

    def prepare_corpora(self) -> Done:
        """Turn train and dev into ids."""
        missing = [name for name in PREPARED if not self.work.is_prepared(name)]
        for split in missing:
            self.work.prepare(split, [self.files(split)])
        tokens = Manifest.load(self.work.corpus("train")).side("target").tokens
        return Done(f"{tokens:,} target tokens to learn from", not missing)

    # --- training --------------------------------------------------------------------------------

    def is_trained(self) -> bool:
        """Whether the last step is done."""
        return self.work.is_trained(self.experiment(), None)

    def train(self, observers: Sequence[Observer]) -> Outcome:
        """Train from where an earlier call stopped."""
        return self.work.train(self.experiment(), None, observers)

    @property
    def trained(self) -> Trained:
        """The steps that were trained, and the seconds they took."""
        return self.work.trained

    @property
    def all_steps(self) -> int:
        """The steps after which a model is good enough to be presented without a warning."""
        return self._template.training.max_steps

    def experiment(self) -> Experiment:
        """What is trained, and how."""
        return settings.fill_in(
            self._template,
            train=self.work.corpus("train"),
            dev=self.work.corpus("dev"),
            vocab_size=Tokenizer.load(self.work.vocabulary).vocab_size,
            seed=self.plan.seed,
            steps=self.all_steps if self.steps is None else self.steps,
        )

    def average(self) -> Done:
        """Average the last checkpoints, section 6.1, but none from the first half of the steps.

        In a short training, an early checkpoint would spoil the mean.
        """
        checkpoints = Checkpoints(self.work.training / CHECKPOINTS)
        half = next(step for step in checkpoints.steps() if 2 * step > self.trained.step)
        return self.work.average(AVERAGED, since=checkpoints.open(half).state()["seconds"])

    # --- translation -----------------------------------------------------------------------------

    def translate(self) -> Done:
        """Translate the test set and score it, once for each model."""
        sources, references = self.lines("test")
        weights = digest(self.model / WEIGHTS)
        results = Results.load(self.scores)
        already = results is not None and results.weights == weights and self.translation.exists()
        if results is None or not already:
            hypotheses = [result.text for result in self.transducer().translate(sources)]
            text = "".join(f"{line}\n" for line in hypotheses)
            write_file(self.translation, text.encode())
            results = measure(hypotheses, references, weights)
            results.save(self.scores)
        return Done(f"{len(sources):,} test sentences, beam 4", already)

    def results(self) -> Results:
        """What `translate` found."""
        results = Results.load(self.scores)
        assert results is not None
        return results

    def transducer(self) -> Transducer:
        """The averaged model."""
        return self.work.transducer(AVERAGED)

    def samples(self) -> list[SampleTranslation]:
        """The test set with its translations."""
        sources, references = self.lines("test")
        ours = list(read_text(self.translation))
        return [SampleTranslation(*each) for each in zip(sources, ours, references, strict=True)]

    def typed(self, transducer: Transducer) -> list[SampleTranslation]:
        """The built-in examples, translated; none if the demo is about custom files."""
        if self.plan.data is not None:
            return []
        examples = texts.built_in()["examples"]
        results = transducer.translate([source for source, _ in examples])
        pairs = zip(results, examples, strict=True)
        return [
            SampleTranslation(source, result.text, target) for result, (source, target) in pairs
        ]

    # --- where things lie ------------------------------------------------------------------------

    @property
    def work(self) -> Work:
        """Where it is worked out."""
        return Work(self.directory)

    @property
    def text(self) -> Path:
        """The sentences."""
        return self.directory / "text"

    @property
    def model(self) -> Path:
        """The averaged model."""
        return self.work.model(AVERAGED)

    @property
    def translation(self) -> Path:
        """The test set as the model translates it."""
        return self.directory / f"test.{self.plan.target_language}"

    @property
    def scores(self) -> Path:
        """What it is worth."""
        return self.directory / "scores.json"

    def files(self, split: str) -> tuple[Path, Path]:
        """A split's two sides."""
        source, target = self.plan.source_language, self.plan.target_language
        return self.text / f"{split}.{source}", self.text / f"{split}.{target}"

    def lines(self, split: str) -> tuple[list[str], list[str]]:
        """What stands in them."""
        source, target = self.files(split)
        return list(read_text(source)), list(read_text(target))

    @property
    def _template(self) -> Experiment:
        return settings.template(self.plan)
