"""The stages of a demo, in their order. What is done is not done again."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from transept import assembly
from transept.api.models import load
from transept.api.transducer import Transducer
from transept.checkpoint import CHECKPOINTS, WEIGHTS, Bundle, Checkpoints
from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import MANIFEST, Manifest
from transept.demo import settings, texts
from transept.demo.plan import Plan
from transept.demo.results import Results, Sample, measure
from transept.errors import CheckpointError, ConfigError
from transept.experiment import Experiment
from transept.tasks.grammar import EXAMPLES
from transept.text.files import read_text
from transept.text.tokenizer import MANIFEST_FILE, Tokenizer
from transept.text.training import train_tokenizer
from transept.training.observers import Observer
from transept.training.trainer import Outcome

PREPARED: Final = ("train", "dev")
AVERAGED: Final = 20
SMALLEST_VOCABULARY: Final = 300


class Done(NamedTuple):
    """A stage that is done, in words."""

    what: str
    already: bool
    """Whether it was done before."""


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
    plan: Plan
    minutes: float = settings.MINUTES

    def begin(self) -> None:
        """Claim the directory."""
        self.plan.keep_in(self.directory)

    # --- from text to ids ------------------------------------------------------------------------

    def make_text(self) -> Done:
        """Draw sentences from the grammar, or copy a person's own."""
        already = self.text.exists()
        if not already:
            own = self.plan.data is not None
            texts.write(
                texts.read_own(self.plan) if own else texts.generate(self.plan),
                self.text,
                self.plan,
            )
        train, dev, test = (len(self.lines(split)[0]) for split in texts.SPLITS)
        origin = "of a small grammar" if self.plan.data is None else f"of {self.plan.data}"
        what = f"{train:,} sentence pairs {origin}, dev {dev:,}, test {test:,}"
        if self.plan.data is not None and (missing := texts.missing_splits(self.plan)):
            what += f"; {' and '.join(missing)} held out from train"
        return Done(what, already)

    def learn_vocabulary(self) -> Done:
        """Learn a joint vocabulary: as large as wanted, or as the text can fill."""
        already = (self.vocabulary / MANIFEST_FILE).exists()
        if not already:
            sides = self.lines("train")
            self._learn([*sides[0], *sides[1]], self._template.model.vocab_size)
        size = Tokenizer.load(self.vocabulary).vocab_size
        return Done(f"{size:,} pieces, one vocabulary for both languages", already)

    def _learn(self, lines: Sequence[str], size: int) -> None:
        while True:
            try:
                train_tokenizer(lines, vocab_size=size).save(self.vocabulary)
                return
            except ConfigError:
                size = size * 3 // 4
                if size < SMALLEST_VOCABULARY:
                    raise

    def prepare_corpora(self) -> Done:
        """Turn train and dev into ids."""
        missing = [name for name in PREPARED if not (self.corpus(name) / MANIFEST).exists()]
        for split in missing:
            job = Preparation(
                inputs=(LinePair(*self.files(split)),),
                tokenizer=self.vocabulary,
                output=self.corpus(split),
            )
            prepare(job)
        tokens = Manifest.load(self.corpus("train")).side("target").tokens
        return Done(f"{tokens:,} target tokens to learn from", not missing)

    # --- training --------------------------------------------------------------------------------

    def is_trained(self) -> bool:
        """Whether the last step is done, or the time is over."""
        step, seconds = self.trained
        return step >= self.experiment().training.max_steps or seconds >= 60 * self.minutes

    def train(self, observers: Sequence[Observer]) -> Outcome:
        """Train from where an earlier call stopped, for what is left of the minutes."""
        _, seconds = self.trained
        return assembly.train(
            self.experiment(),
            self.run,
            minutes=self.minutes - seconds / 60,
            allow_change=True,  # more minutes are more steps
            observers=observers,
        )

    @property
    def trained(self) -> tuple[int, float]:
        """The steps that were trained, and the seconds they took."""
        newest = Checkpoints(self.run / CHECKPOINTS).newest()
        if newest is None:
            return 0, 0.0
        state = newest.state()
        return state["step"], state["seconds"]

    def experiment(self) -> Experiment:
        """What is trained, and how."""
        return settings.fill_in(
            self._template,
            train=self.corpus("train"),
            dev=self.corpus("dev"),
            vocab_size=Tokenizer.load(self.vocabulary).vocab_size,
            seed=self.plan.seed,
            minutes=self.minutes,
        )

    def average(self) -> Done:
        """Average the last checkpoints, section 6.1."""
        steps = Checkpoints(self.run / CHECKPOINTS).steps()[-AVERAGED:]
        already = _averaged_steps(self.model) == steps
        if not already:
            assembly.average_run(self.run, last=len(steps), output=self.model, force=True)
        what = f"the mean of the weights at {len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"
        return Done(what, already)

    # --- translation -----------------------------------------------------------------------------

    def translate(self) -> Done:
        """Translate the test set and score it, once for each model."""
        sources, references = self.lines("test")
        with (self.model / WEIGHTS).open("rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        results = Results.load(self.scores)
        already = results is not None and results.weights == weights and self.translation.exists()
        if results is None or not already:
            hypotheses = [result.text for result in self.transducer().translate(sources)]
            text = "".join(f"{line}\n" for line in hypotheses)
            self.translation.write_text(text, encoding="utf-8")
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
        model = load(self.model)
        assert isinstance(model, Transducer)
        return model

    def samples(self) -> list[Sample]:
        """The test set with its translations."""
        sources, references = self.lines("test")
        ours = list(read_text(self.translation))
        return [Sample(*each) for each in zip(sources, ours, references, strict=True)]

    def typed(self, transducer: Transducer) -> list[Sample]:
        """Sentences that a person might type, translated; none of a language that is not known."""
        if self.plan.data is not None:
            return []
        results = transducer.translate([source for source, _ in EXAMPLES])
        pairs = zip(results, EXAMPLES, strict=True)
        return [Sample(source, result.text, target) for result, (source, target) in pairs]

    # --- where things lie ------------------------------------------------------------------------

    @property
    def text(self) -> Path:
        """The sentences."""
        return self.directory / "text"

    @property
    def vocabulary(self) -> Path:
        """The tokenizer."""
        return self.directory / "vocabulary"

    def corpus(self, split: str) -> Path:
        """A prepared split."""
        return self.directory / "data" / split

    @property
    def run(self) -> Path:
        """The training."""
        return self.directory / "run"

    @property
    def model(self) -> Path:
        """The averaged model."""
        return self.run / f"average-{AVERAGED}"

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


def _averaged_steps(model: Path) -> list[int] | None:
    """Of which steps a model is the average; None if it is none."""
    try:
        steps: list[int] | None = Bundle.open(model).about.get("averaged_steps")
    except CheckpointError:
        return None
    return steps
