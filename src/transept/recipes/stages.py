"""The stages of a recipe, in their order: each can be stopped, and is done once.

    recipe.toml    what is done here
    vocabulary/    data/    run/    as `Work` has them
    tests/         the test sets, a sentence a line
    hypotheses/    how they were translated
    records/       what each stage wrote down
    record.json    all of it together, and the training curve: what a report is made from

After the first stage the directory holds all that the others need: it can be moved to another
machine, in pieces if need be, and the text can stay behind.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from transept import config
from transept.api.config import Watch
from transept.api.perplexity import measure_perplexities
from transept.checkpoint import CHECKPOINTS, WEIGHTS, Checkpoints
from transept.data.fetching.datasets import DATASETS
from transept.data.fetching.download import Watcher as Downloading
from transept.data.fetching.fetch import fetch
from transept.data.preparation.prepare import Watcher as Preparing
from transept.data.shards import Manifest
from transept.errors import CheckpointError, ConfigError, DataError
from transept.evaluation.reading import language_of
from transept.evaluation.report import System, evaluate
from transept.experiment import Experiment
from transept.recipes.claim import claim
from transept.recipes.cost import flops_per_target_token, sustained_single_precision
from transept.recipes.curve import curve
from transept.recipes.deadline import Deadline
from transept.recipes.recipe import DEV, STAGES, Pair, Recipe, TestSet, fingerprint
from transept.recipes.records import Records, provenance, sha256
from transept.recipes.work import Done, Work, averaged_steps
from transept.runtime.power import PowerMeter
from transept.runtime.storage import write_json
from transept.text.files import read_sentences, read_text, write_sentences
from transept.text.tokenizer import Tokenizer
from transept.text.training import LineCount, train_tokenizer
from transept.training.observers import Observer
from transept.training.trainer import Outcome

FILE: Final = "recipe.toml"
RECORD: Final = "record.json"


@dataclass(frozen=True, slots=True)
class Watchers:
    """Who is told how far the stages are."""

    downloading: Downloading | None = None
    learning: LineCount | None = None
    preparing: Preparing | None = None
    translating: Watch | None = None
    training: Sequence[Observer] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeRun:
    """A recipe in the directory where it is worked out."""

    name: str
    recipe: Recipe
    directory: Path
    data: Path | None = None
    """Where the text lies; not needed once it is prepared."""
    minutes: float | None = None
    """Of training, in all."""
    system: str = "transept"
    """Whose model it is."""

    def begin(self) -> None:
        """Claim the directory."""
        claim(self.directory, FILE, self.recipe, kind="recipe", option="--work")

    # --- prepare ---------------------------------------------------------------------------------

    def prepare(self, watch: Watchers) -> Done:
        """Learn the vocabulary, turn text into ids, and put the test sets beside them."""
        already = self.records.is_done("prepare", self.preparation)
        if not already:
            files = self._files(watch)
            with self.records.writing("prepare", self.preparation) as sitting:
                sitting.results["files"] = {
                    str(path): {"bytes": full.stat().st_size, "sha256": sha256(full)}
                    for path, full in files.items()
                }
                sitting.results["tests"] = {each.name: self._keep(each) for each in self.tests}
                self.work.learn_vocabulary(lambda: self._learn(watch))
                manifests = {name: self._ids(name, watch) for name in self._inputs()}
                sitting.results |= self.prepared(manifests)
        self._check_corpora()
        corpora = self._recorded("prepare")["corpora"]
        pairs = sum(corpora[text.name]["pairs"] for text in self.recipe.texts)
        tokens = sum(corpora[text.name]["target_tokens"] for text in self.recipe.texts)
        return Done(f"{pairs:,} pairs, {tokens:,} target tokens to learn from", already)

    @property
    def preparation(self) -> dict[str, str]:
        """What decides about the ids. Weights do not: they are the training's."""
        recipe = self.recipe
        texts = [(text.name, str(text.source), str(text.target)) for text in recipe.texts]
        others = [config.as_table(each) for each in (*recipe.dev, *recipe.tests)]
        size = recipe.experiment.model.vocab_size
        words = fingerprint(texts, others, recipe.vocabulary, recipe.cleaning, size, recipe.dataset)
        return {"recipe": words}

    def _files(self, watch: Watchers) -> dict[Path, Path]:
        """The files of the recipe and where they are, all of them there."""
        if self.data is None:
            raise ConfigError(
                f"{self.directory}: its text is not prepared yet: give --data, the directory with "
                f"{self.recipe.texts[0].source}"
            )
        if self.recipe.dataset is not None:
            fetch(DATASETS[self.recipe.dataset], self.data, watch=watch.downloading)
        names = [path for pair in self.recipe.pairs for path in (pair.source, pair.target)]
        missing = [str(name) for name in names if not (self.data / name).is_file()]
        if missing:
            listed = "\n  ".join(dict.fromkeys(missing))
            raise DataError(f"{self.data}: lacks files of this recipe:\n  {listed}")
        return {name: self.data / name for name in names}

    def _keep(self, test: TestSet) -> dict[str, Any]:
        """Put a test set where it stays."""
        kept: dict[str, Any] = {}
        self.test_file(test, "source").parent.mkdir(parents=True, exist_ok=True)
        for side, original in zip(("source", "target"), self._paths(test), strict=True):
            path = self.test_file(test, side)
            lines = list(read_sentences(original))
            write_sentences(path, lines)
            kept |= {f"{side}_sha256": sha256(path), "sentences": len(lines)}
        return kept

    def _learn(self, watch: Watchers) -> Tokenizer:
        return train_tokenizer(
            self._lines(),
            vocab_size=self.recipe.experiment.model.vocab_size,
            kind=self.recipe.vocabulary.kind,
            max_lines=self.recipe.vocabulary.max_lines,
            on_read=watch.learning,
        )

    def _lines(self) -> Iterator[str]:
        """All text, in an order that does not depend on which way it is translated."""
        for text in self.recipe.texts:
            for path in sorted(self._paths(text), reverse=True):
                yield from read_text(path)

    def _ids(self, name: str, watch: Watchers) -> Manifest:
        pairs = [self._paths(pair) for pair in self._inputs()[name]]
        return self.work.prepare(name, pairs, self.recipe.cleaning, watch.preparing)

    def _inputs(self) -> dict[str, tuple[Pair, ...]]:
        """The corpora and what each is made of."""
        return {**{text.name: (text,) for text in self.recipe.texts}, DEV: self.recipe.dev}

    def prepared(self, manifests: dict[str, Manifest]) -> dict[str, Any]:
        """What the record tells of the corpora."""
        corpora = {
            name: {
                "hash": manifest.hash,
                "read": manifest.read,
                "pairs": manifest.pairs,
                "dropped": manifest.dropped,
                "source_tokens": manifest.source.tokens,
                "target_tokens": manifest.target.tokens,
            }
            for name, manifest in manifests.items()
        }
        return {"vocabulary": Tokenizer.load(self.work.vocabulary).sha256, "corpora": corpora}

    def _check_corpora(self) -> None:
        """What lies there must be what the record tells of."""
        for name, recorded in self._recorded("prepare")["corpora"].items():
            path = self.work.corpus(name)
            if Manifest.load(path).hash != recorded["hash"]:
                raise DataError(
                    f"{path}: is not the corpus that {self.records.directory}/prepare.json tells "
                    "of; copy it again, or remove that file to prepare the text again"
                )

    def _paths(self, pair: Pair) -> tuple[Path, Path]:
        assert self.data is not None
        return self.data / pair.source, self.data / pair.target

    # --- train -----------------------------------------------------------------------------------

    def experiment(self) -> Experiment:
        """What is trained, and how."""
        recipe = self.recipe if self.minutes is None else self.recipe.within(self.minutes)
        corpora = {text.name: self.work.corpus(text.name) for text in recipe.texts}
        return recipe.filled_in(corpora, self.work.corpus(DEV))

    def is_trained(self) -> bool:
        """Whether there is nothing left to train, and the record tells of all of it."""
        record = self.records.read("train")
        if record is None or record["results"]["step"] < self.work.trained[0]:
            return False
        return self._is_ended()

    def _is_ended(self) -> bool:
        record = self.records.read("train")
        patient = record is None or record["results"]["outcome"] != "no longer improving"
        return not patient or self.work.is_trained(self.experiment(), self.minutes)

    def train(self, watch: Watchers, end: float | None = None) -> Outcome:
        """Train from where an earlier call stopped, until `end` of the monotonic clock at most."""
        if self.records.read("prepare") is None:
            raise ConfigError(f"{self.directory}: nothing is prepared yet; begin with that stage")
        if self._is_ended():
            return self._note_what_was_lost()
        before, seconds = self.work.trained
        left = None if self.minutes is None else self.minutes - seconds / 60
        observers = [*watch.training, *([] if end is None else [Deadline(end)])]
        begin = time.monotonic()
        with PowerMeter() as power:
            outcome = self.work.train(self.experiment(), left, observers)
        sitting = {
            "from_step": before,
            "to_step": self.work.trained[0],
            "wall_seconds": time.monotonic() - begin,
            "joules": power.joules,
            "by": provenance(),
        }
        self._note_training(outcome, sitting)
        return outcome

    def _note_what_was_lost(self) -> Outcome:
        """Of a sitting that was killed between its last step and its record, the end is known."""
        record = self.records.read("train")
        before = 0 if record is None else record["results"]["step"]
        step = self.work.trained[0]
        unknown = {"wall_seconds": None, "joules": None, "by": provenance()}
        finished = step >= self.recipe.experiment.training.max_steps
        outcome: Outcome = "finished" if finished else "out of time"
        self._note_training(outcome, {"from_step": before, "to_step": step, **unknown})
        return outcome

    def _note_training(self, outcome: Outcome, sitting: dict[str, Any]) -> None:
        """Add a sitting to the record; what it went on from is not counted twice."""
        earlier = self.records.read("train")
        sittings = [] if earlier is None else earlier["results"]["sittings"]
        experiment = self.experiment()
        state = self.work.state
        assert state is not None
        counts = ("step", "seconds", "source_tokens", "target_tokens", "best_step", "best_nll")
        record = {
            "stage": "train",
            "inputs": self._training_inputs(),
            "results": {
                "outcome": outcome,
                **{name: state[name] for name in counts},
                "flops_per_target_token": flops_per_target_token(experiment),
                "sustained_flops": sustained_single_precision(experiment.training.device),
                "sittings": [*sittings, sitting],
            },
            "by": provenance(),
        }
        self.records.write("train", record)

    def _training_inputs(self) -> dict[str, Any]:
        corpora = self._recorded("prepare")["corpora"]
        return {
            "corpora": {name: corpus["hash"] for name, corpus in corpora.items()},
            "experiment": fingerprint(self.recipe.experiment),
            "minutes": self.minutes,
            "seed": self.recipe.experiment.training.seed,
        }

    # --- average, decode, score ------------------------------------------------------------------

    def average(self) -> Done:
        """The mean of the last checkpoints, section 6.1."""
        if not Checkpoints(self.work.run / CHECKPOINTS).steps():
            raise CheckpointError(f"{self.directory}: nothing is trained yet; begin with `train`")
        last, steps = self.recipe.average.last, self._averaged()
        there = averaged_steps(self.work.model(last)) == steps
        already = there and self.records.is_done("average", {"steps": steps})
        if not already:
            with self.records.writing("average", {"steps": steps}) as sitting:
                self.work.average(last)
                sitting.results["weights"] = self.weights
        short = last - len(steps)
        missing = f"; {short} fewer than the recipe averages" if short else ""
        return Done(self.work.average(last).what + missing, already)

    def _averaged(self) -> list[int]:
        return Checkpoints(self.work.run / CHECKPOINTS).steps()[-self.recipe.average.last :]

    def decode(self, watch: Watchers) -> Done:
        """Translate the test sets; a sentence that is in two of them, once."""
        sources = {test.name: self._sentences(test, "source") for test in self.tests}
        inputs = {
            "weights": self.weights,
            "sources": {test.name: sha256(self.test_file(test, "source")) for test in self.tests},
            "search": config.as_table(self.recipe.search),
        }
        written = all(self.hypotheses(test).exists() for test in self.tests)
        already = written and self.records.is_done("decode", inputs)
        unique = list(dict.fromkeys(line for lines in sources.values() for line in lines))
        if not already:
            with self.records.writing("decode", inputs) as sitting:
                transducer = self.work.transducer(self.recipe.average.last)
                options: dict[str, Any] = asdict(self.recipe.search)
                begin = time.monotonic()
                found = transducer.translate(
                    unique, split=False, too_long="split", watch=watch.translating, **options
                )
                sitting.results["search_seconds"] = time.monotonic() - begin
                texts = [one.text.replace("\n", " ") for one in found]
                self._write(dict(zip(unique, texts, strict=True)), sources)
                sitting.results |= {"engine": transducer.engine.name, "sentences": len(unique)}
        beam = self.recipe.search.beam_size
        return Done(f"{len(unique):,} sentences of {len(sources)} test sets, beam {beam}", already)

    def _write(self, translations: dict[str, str], sources: dict[str, list[str]]) -> None:
        for test in self.tests:
            path = self.hypotheses(test)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_sentences(path, [translations[line] for line in sources[test.name]])

    def score(self) -> Done:
        """Score the translations by every convention, and the references by the model."""
        inputs: dict[str, Any] = {
            name: {test.name: sha256(path(test)) for test in self.tests}
            for name, path in (("hypotheses", self.hypotheses), ("references", self._references))
        }
        inputs["weights"] = self.weights
        already = self.records.is_done("score", inputs)
        if not already:
            with self.records.writing("score", inputs) as sitting:
                sitting.results["tests"] = {test.name: self._score(test) for test in self.tests}
        tests = self._recorded("score")["tests"]
        first = tests[self.tests[0].name]["systems"][0]["scores"][0]
        name = first["convention"]["name"]
        return Done(f"{self.tests[0].name}: {name} {first['value']:.2f}", already)

    def _score(self, test: TestSet) -> dict[str, Any]:
        references = self._sentences(test, "target")
        hypotheses = list(read_text(self.hypotheses(test)))
        language = language_of(self._references(test))
        scored = asdict(evaluate(System(self.name, hypotheses), references, language=language))
        if test.perplexity:
            transducer = self.work.transducer(self.recipe.average.last)
            found = measure_perplexities(transducer, self._sentences(test, "source"), references)
            scored["perplexities"] = [asdict(one) for one in found]
        return scored

    # --- report ----------------------------------------------------------------------------------

    def report(self) -> Done:
        """Everything that was written down, in one file."""
        stages = {name: self.records.read(name) for name in STAGES[:-1]}
        missing = [name for name, record in stages.items() if record is None]
        if missing:
            raise ConfigError(f"{self.directory}: {', '.join(missing)}: not done yet")
        record = {
            "kind": "run",
            "name": self.name,
            "system": self.system,
            "recipe": config.as_table(self.recipe),
            "minutes": self.minutes,
            "stages": stages,
            "curve": curve(self.work.run),
        }
        write_json(self.directory / RECORD, record)
        return Done(f"{self.directory / RECORD}", already=False)

    # --- where things lie ------------------------------------------------------------------------

    @property
    def work(self) -> Work:
        """Vocabulary, corpora and training."""
        return Work(self.directory)

    @property
    def records(self) -> Records:
        """What the stages wrote down."""
        return Records(self.directory / "records")

    @property
    def tests(self) -> tuple[TestSet, ...]:
        """What is translated."""
        return self.recipe.tests

    @property
    def weights(self) -> str:
        """The sha256 of the averaged weights."""
        path = self.work.model(self.recipe.average.last) / WEIGHTS
        if not path.exists():
            raise ConfigError(f"{self.directory}: nothing is averaged yet; begin with `average`")
        return sha256(path)

    def test_file(self, test: TestSet, side: str) -> Path:
        """One side of a test set."""
        recipe = self.recipe
        language = recipe.source_language if side == "source" else recipe.target_language
        return self.directory / "tests" / f"{test.name}.{language}"

    def hypotheses(self, test: TestSet) -> Path:
        """How a test set was translated."""
        return self.directory / "hypotheses" / f"{test.name}.{self.recipe.target_language}"

    def _references(self, test: TestSet) -> Path:
        return self.test_file(test, "target")

    def _sentences(self, test: TestSet, side: str) -> list[str]:
        return list(read_text(self.test_file(test, side)))

    def _recorded(self, stage: str) -> dict[str, Any]:
        record = self.records.read(stage)
        if record is None:
            raise ConfigError(f"{self.directory}: the stage `{stage}` is not done yet")
        results: dict[str, Any] = record["results"]
        return results
