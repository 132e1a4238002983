"""The first stage: train the vocabulary, tokenize the text and copy the test sets."""

from collections.abc import Iterator
from pathlib import Path

from transept import config
from transept.apps.recipes import sentences
from transept.apps.recipes.recipe import DEV, TestSet, TextPair, fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import lines
from transept.apps.recipes.stage import Stage, Watchers
from transept.data.fetching.datasets import DATASETS
from transept.data.fetching.fetch import fetch
from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Manifest
from transept.errors import Argument, ConfigError, DataError
from transept.runtime.storage import digest
from transept.text.files import read_sentences, read_text, write_sentences
from transept.text.tokenizer import MANIFEST_FILE, Tokenizer
from transept.text.training import train_tokenizer


class Prepare(Stage):
    """Train the vocabulary, tokenize the text and copy the test sets."""

    name = "prepare"

    def inputs(self) -> Table:
        """Everything that the token ids depend on. Weights of texts only affect training."""
        recipe = self.run.recipe
        texts = [(text.name, str(text.source), str(text.target)) for text in recipe.texts]
        others = [config.as_table(each) for each in (*recipe.dev, *recipe.tests)]
        size = recipe.experiment.model.vocab_size
        words = fingerprint(texts, others, recipe.vocabulary, recipe.cleaning, size, recipe.dataset)
        return {"recipe": words}

    def fetch(self, watch: Watchers) -> None:
        """Download or write the text, and check that all files of the recipe exist."""
        data, recipe = self._data, self.run.recipe
        watch.part("text")
        if recipe.dataset is not None:
            fetch(DATASETS[recipe.dataset], data, watch=watch.downloading)
        if recipe.sentences is not None and not data.exists():
            languages = (recipe.source_language, recipe.target_language)
            sentences.write(sentences.splits_of(recipe), data, languages)
        missing = [str(name) for name in self._names() if not (data / name).is_file()]
        if missing:
            listed = "\n  ".join(dict.fromkeys(missing))
            raise DataError(f"{data}: lacks files of this recipe:\n  {listed}")

    def carry_out(self, watch: Watchers) -> Table:
        """Prepare everything. The results contain the hash of each file that was read."""
        files = {str(name): _stored(self._data / name) for name in self._names()}
        tests = {test.name: self._keep(test) for test in self.run.recipe.tests}
        watch.part("vocabulary")
        if not (self.run.vocabulary / MANIFEST_FILE).exists():
            self._learn(watch).save(self.run.vocabulary)
        vocabulary = Tokenizer.load(self.run.vocabulary).sha256
        watch.part("ids")
        corpora = {name: _described(self._ids(name, watch)) for name in self._corpora()}
        return {"files": files, "tests": tests, "vocabulary": vocabulary, "corpora": corpora}

    def summary(self, record: Table) -> str:
        """The number of pairs and tokens."""
        corpora = [record["results"]["corpora"][text.name] for text in self.run.recipe.texts]
        pairs, tokens = (sum(one[key] for one in corpora) for key in ("pairs", "target_tokens"))
        return f"{pairs:,} pairs, {tokens:,} target tokens for training"

    def is_whole(self) -> bool:
        """Reject corpora that differ from the record."""
        results = self.run.results("prepare")
        assert results is not None
        for name, recorded in results["corpora"].items():
            path = self.run.corpus(name)
            if Manifest.load(path).hash != recorded["hash"]:
                raise DataError(
                    f"{path}: is not the corpus in {self.run.records.directory}/prepare.json; "
                    "copy it again, or remove that file to prepare the text again"
                )
        return True

    def _keep(self, test: TestSet) -> Table:
        """Copy a test set into the work directory."""
        source, target = self.run.sources(test), self.run.references(test)
        source.parent.mkdir(parents=True, exist_ok=True)
        for original, copy in zip(self._paths(test), (source, target), strict=True):
            write_sentences(copy, read_sentences(original))
        hashes = {"source_sha256": digest(source), "target_sha256": digest(target)}
        return {**hashes, "sentences": len(lines(target))}

    def _learn(self, watch: Watchers) -> Tokenizer:
        """Train the vocabulary, with a smaller size if there is too little text."""
        recipe = self.run.recipe
        size, least = recipe.experiment.model.vocab_size, recipe.vocabulary.min_size
        while True:
            try:
                return train_tokenizer(
                    self._lines(),
                    vocab_size=size,
                    kind=recipe.vocabulary.kind,
                    max_lines=recipe.vocabulary.max_lines,
                    on_read=watch.learning,
                )
            except ConfigError:
                size = size * 3 // 4
                if least is None or size < least:
                    raise

    def _lines(self) -> Iterator[str]:
        """All text, in an order that is independent of the translation direction."""
        for text in self.run.recipe.texts:
            for path in sorted(self._paths(text), reverse=True):
                yield from read_text(path)

    def _ids(self, name: str, watch: Watchers) -> Manifest:
        job = Preparation(
            inputs=tuple(LinePair(*self._paths(pair)) for pair in self._corpora()[name]),
            tokenizer=self.run.vocabulary,
            output=self.run.corpus(name),
            cleaning=self.run.recipe.cleaning,
        )
        return prepare(job, watch=watch.preparing)

    def _corpora(self) -> dict[str, tuple[TextPair, ...]]:
        """The file pairs of each corpus."""
        recipe = self.run.recipe
        return {**{text.name: (text,) for text in recipe.texts}, DEV: recipe.dev}

    def _names(self) -> list[Path]:
        """The files of the recipe, relative to the data directory."""
        recipe = self.run.recipe
        pairs = (*recipe.texts, *recipe.dev, *recipe.tests)
        return [path for pair in pairs for path in (pair.source, pair.target)]

    def _paths(self, pair: TextPair) -> tuple[Path, Path]:
        return self._data / pair.source, self._data / pair.target

    @property
    def _data(self) -> Path:
        if self.run.recipe.sentences is not None:
            return self.run.text
        if self.run.data is None:
            raise ConfigError(
                f"{self.run.directory}: the text is not prepared yet: give ", Argument("data"),
                f", the directory with {self.run.recipe.texts[0].source}",
            )  # fmt: skip
        return self.run.data


def _described(corpus: Manifest) -> Table:
    return {
        "hash": corpus.hash,
        "read": corpus.read,
        "pairs": corpus.pairs,
        "dropped": corpus.dropped,
        "source_tokens": corpus.source.tokens,
        "target_tokens": corpus.target.tokens,
    }


def _stored(path: Path) -> Table:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}
