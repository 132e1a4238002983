"""The stages of benchmarks/parsing.py: files to ids, training, average, parses, scores.

Completed stages are skipped, so that the same command resumes after an interruption.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from recombination import recombined

import transept
from transept.api.parses import TreeSearch
from transept.assembly import average_run
from transept.checkpoint import CHECKPOINTS, MANIFEST, Checkpoints
from transept.data.cleaning import Cleaning
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import MANIFEST as CORPUS
from transept.evaluation.parse_report import evaluate_parses
from transept.tasks.parsing.leaves import TagsName
from transept.tasks.parsing.pairs import clean_trees
from transept.tasks.parsing.treebank import Treebank
from transept.tasks.parsing.vocabulary import tags_of, treebank_vocabulary
from transept.text.files import write_sentences
from transept.text.tokenizer import MANIFEST_FILE
from transept.text.training import train_tokenizer
from transept.text.trees import Tree

STOPPED = 75
AVERAGED = 8
LONGEST = 384  # maximum number of symbols of a training tree
WEIGHT = 2.0  # of the treebank, if there are other trees
COPY_WEIGHT = 0.5  # of a recombined copy of the treebank
BEAMS, ALPHA, ALPHAS = (1, 4, 21), 0.3, (0.0, 0.6)
BOUNDS = (0, 10, 20, 30, 40, 50, 60, 1_000_000)
Models = tuple[Path, ...]
"""One model, or an ensemble."""


class Bank(NamedTuple):
    """Treebank files; `semi` are trees produced by a parser."""

    train: Path
    dev: Path
    test: Path
    semi: tuple[Path, ...] = ()
    copies: int = 0
    """The number of copies of the treebank with exchanged constituents."""

    @classmethod
    def find(cls, directory: Path, semi: Sequence[Path] = (), copies: int = 0) -> "Bank":
        train, dev, test = (_the_file(directory, part) for part in ("train", "dev", "test"))
        return cls(train, dev, test, tuple(semi), copies)


def _the_file(directory: Path, part: str) -> Path:
    found = sorted(directory.glob(f"{part}.*"))
    if len(found) != 1:
        sys.exit(
            f"{directory}: must contain exactly one file {part}.mrg, or {part}.mrg.gz, .xz or "
            f".zst; found {len(found)}"
        )
    return found[0]


def prepared(bank: Bank, directory: Path, tags: TagsName, vocab_size: int) -> list[str]:
    """Create vocabularies and ids; return the config overrides for training on them."""
    files = [bank.train, *bank.semi]
    vocabulary = directory / "vocabulary"
    if not (vocabulary / MANIFEST_FILE).exists():
        vocabulary.mkdir(parents=True, exist_ok=True)
        words = (" ".join(tree.words) for tree in clean_trees(files))
        train_tokenizer(words, vocab_size=vocab_size).save(vocabulary)
    symbols = treebank_vocabulary(files, tags)
    learned = Cleaning(max_tokens=LONGEST, max_ratio=0)
    whole = Cleaning(max_tokens=0, max_ratio=0, drop_duplicates=False)
    parts = [("train", [bank.train], learned), ("dev", [bank.dev], whole)]
    weights = {"train": 1.0}
    if bank.semi:
        parts.append(("semi", [*bank.semi], learned))
        weights |= {"train": WEIGHT, "semi": 1.0}
    if bank.copies:
        name = f"recombined-{bank.copies}"
        weights |= {"train": WEIGHT, name: COPY_WEIGHT}
        # The file is large, and not needed if the ids already exist.
        if not (directory / name / CORPUS).exists():
            file = directory / f"{name}.mrg"
            trees = recombined([*clean_trees([bank.train])], bank.copies)
            write_sentences(file, map(str, trees))
            parts.append((name, [file], learned))
    for name, paths, cleaning in parts:
        job = Preparation(
            inputs=tuple(Treebank(path, tags_of(symbols)) for path in paths),
            tokenizer=vocabulary,
            target_tokenizer=symbols,
            output=directory / name,
            cleaning=cleaning,
        )
        prepare(job)
    corpora = [
        f'{{path = "{directory / name}", weight = {weight}}}' for name, weight in weights.items()
    ]
    return [
        "model.source_vocab_size=0",
        f"data.train=[{', '.join(corpora)}]",
        f'data.dev="{directory / "dev"}"',
    ]


# --- parsing in several processes ------------------------------------------------------------


class Search(NamedTuple):
    """Search options, which the paper also chose on its development set."""

    beam_size: int
    length_penalty: float

    def __str__(self) -> str:
        return f"beam {self.beam_size}, α {self.length_penalty}"


class Parsed(NamedTuple):
    """Trees as text, the number of outputs that needed repair, and the time taken."""

    trees: list[str]
    malformed: int
    seconds: float


@dataclass(frozen=True)
class Workers:
    """Processes that parse a share each: the search waits more for Python than for the GPU."""

    pool: ProcessPoolExecutor
    number: int

    @classmethod
    @contextmanager
    def start(cls, number: int) -> "Iterator[Workers]":
        # Growing tensors fragment the memory, which only their own process could reuse.
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
        with ProcessPoolExecutor(number, mp_context=get_context("spawn")) as pool:
            yield cls(pool, number)

    def parse(
        self, models: Models, trees: Sequence[Tree], search: Search, constraint: TreeSearch
    ) -> Parsed:
        shares = [trees[first :: self.number] for first in range(self.number)]
        jobs = [self.pool.submit(_parse, models, each, search, constraint) for each in shares]
        found = [job.result() for job in jobs]
        likeliest = [""] * len(trees)
        for first, one in enumerate(found):
            likeliest[first :: self.number] = one.trees
        malformed = sum(one.malformed for one in found)
        return Parsed(likeliest, malformed, max(one.seconds for one in found))


@lru_cache(maxsize=1)
def _loaded(models: Models) -> transept.Parser:
    return transept.load_parser(*models)


def _parse(models: Models, trees: Sequence[Tree], search: Search, constraint: TreeSearch) -> Parsed:
    parser = _loaded(models)
    begin = time.perf_counter()
    found = parser.parse(
        [tree.words for tree in trees],
        # The model does not read tags; evalb needs them to delete punctuation.
        tags=[tree.tags for tree in trees],
        max_source_length=max((len(str(tree)) for tree in trees), default=LONGEST),
        constraint=constraint,
        **search._asdict(),
    )
    seconds = time.perf_counter() - begin
    malformed = sum(one.outputs[0].fault is not None for one in found)
    return Parsed([str(one) for one in found], malformed, seconds)


# --- one parser ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Score:
    """Labelled bracketing scores by evalb's rules; a failed sentence counts as no brackets."""

    sentences: int
    f1: float
    short_f1: float
    """F1 of sentences of at most 40 words."""
    complete_match: float
    malformed: int
    seconds: float
    by_length: Mapping[str, tuple[int, float]]
    """The number of sentences and their F1, by length."""


def score(gold: Sequence[str], parsed: Parsed) -> Score:
    report = evaluate_parses(gold, parsed.trees)
    whole = report.all.whole
    by_length = {}
    for more, most in pairwise(BOUNDS):
        chosen = [i for i, one in enumerate(report.sentences) if more < one.length <= most]
        if chosen:
            part = evaluate_parses([gold[i] for i in chosen], [parsed.trees[i] for i in chosen])
            name = f"{more + 1} to {most} words" if most < BOUNDS[-1] else f"over {more} words"
            by_length[name] = len(chosen), part.all.whole.f1
    return Score(
        sentences=len(gold),
        f1=whole.f1,
        short_f1=report.short.whole.f1,
        complete_match=whole.complete_match,
        malformed=parsed.malformed,
        seconds=parsed.seconds,
        by_length=by_length,
    )


@dataclass(frozen=True)
class Contender:
    """A directory with a training run, its averaged models and their scores."""

    directory: Path

    @property
    def run(self) -> Path:
        return self.directory / "run"

    def trained(self) -> tuple[int, float]:
        """Steps and minutes."""
        newest = Checkpoints(self.run / CHECKPOINTS).newest()
        if newest is None:
            return 0, 0.0
        state = newest.state()
        return state["step"], state["seconds"] / 60

    def train(
        self, config: Path, overrides: Sequence[str], minutes: float, console: Path | None = None
    ) -> None:
        """Train until the run has `minutes` in total. Output goes to `console` if given."""
        left = minutes - self.trained()[1]
        if left <= 0:
            return
        command = [sys.executable, "-m", "transept", "train", str(config), *overrides]
        command += ["--output", str(self.run), "--minutes", str(left), "--allow-change"]
        with nullcontext() if console is None else console.open("ab") as file:
            code = subprocess.run(command, check=False, stdout=file, stderr=file).returncode
        if code not in (0, STOPPED):
            sys.exit(f"training in {self.run} failed{f', see {console}' if console else ''}")
        # The exit code is also STOPPED if the minutes are used up.
        if code == STOPPED and self.trained()[1] < minutes - 0.1:
            sys.exit(f"training in {self.run} was stopped; run the same command to resume")

    @property
    def model(self) -> Path:
        """The average of the last regular checkpoints, at most AVERAGED of them."""
        steps = Checkpoints(self.run / CHECKPOINTS).regular_steps()[-AVERAGED:]
        average = self.run / f"average-{steps[-1]}"
        if not average.exists():
            average_run(self.run, last=len(steps), output=average, force=False)
        return average

    @property
    def judged(self) -> "Judged":
        return Judged(self.directory / "scores" / self.model.name, (self.model,))


@dataclass(frozen=True)
class Judged:
    """Models whose parses and scores are stored in a directory."""

    directory: Path
    models: Models

    @classmethod
    def together(cls, directory: Path, models: Models) -> "Judged":
        """An ensemble. Its directory depends on the models."""
        manifests = b"".join((model / MANIFEST).read_bytes() for model in models)
        return cls(directory / "scores" / hashlib.sha256(manifests).hexdigest()[:12], models)

    def score(
        self, part: str, trees: Sequence[Tree], search: Search, workers: Workers,
        constraint: TreeSearch = "trees",
    ) -> Score:  # fmt: skip
        """Parse and score, or read the stored score."""
        name = f"{part}-{search.beam_size}-{search.length_penalty}-{constraint}"
        file = self.directory / f"{name}.json"
        if not file.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            parsed = workers.parse(self.models, trees, search, constraint)
            found = score([str(tree) for tree in trees], parsed)
            write_sentences(self.directory / f"{name}.mrg", parsed.trees)
            file.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
        return Score(**json.loads(file.read_text(encoding="utf-8")))


def choose(f1: Callable[[Search], float]) -> Search:
    """Choose the beam size on dev, then α for that beam size."""
    found = {search: f1(search) for search in (Search(beam, ALPHA) for beam in BEAMS)}
    best = max(found, key=found.__getitem__)
    if best.beam_size > 1:
        more = (Search(best.beam_size, alpha) for alpha in ALPHAS)
        found |= {search: f1(search) for search in more}
    return max(found, key=found.__getitem__)
