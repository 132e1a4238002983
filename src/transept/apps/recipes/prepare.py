"""The stage before training: train the vocabulary, tokenize the text and copy the test sets."""

from collections.abc import Iterator
from pathlib import Path

from transept import config
from transept.apps.recipes.chunks import chunk_paths
from transept.apps.recipes.recipe import DEV, RecipeText, TestSet, TextPair, fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import lines
from transept.apps.recipes.stage import Stage, Watchers
from transept.apps.recipes.texts import (
    data_directory,
    fetch_text,
    file_names,
    write_generated,
)
from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Manifest
from transept.errors import ConfigError, DataError
from transept.runtime.storage import digest
from transept.text.files import read_sentences, read_text, write_sentences
from transept.text.spans import MASKS
from transept.text.tokenizer import MANIFEST_FILE, Tokenizer
from transept.text.training import train_tokenizer
from transept.text.variation import Variation

Paths = tuple[Path, Path]


class Prepare(Stage):
    """Train the vocabulary, tokenize the text and copy the test sets."""

    name = "prepare"

    def inputs(self) -> Table:
        """Everything that the token ids depend on. Weights of texts only affect training."""
        recipe = self.run.recipe
        texts = [
            (text.name, str(text.source), str(text.target))
            + ((text.max_lines,) if text.is_written and text.max_lines else ())
            for text in recipe.texts
        ]
        others = [config.as_table(each) for each in (*recipe.dev, *recipe.tests)]
        size = recipe.experiment.model.vocab_size
        settings = [recipe.vocabulary, recipe.cleaning, size, recipe.dataset]
        if recipe.variation is not None:
            settings.append(recipe.variation)
        translated = {name: text["sha256"] for name, text in self._translated().items()}
        table = {"recipe": fingerprint(texts, others, *settings)}
        return {**table, "translated": translated} if translated else table

    def fetch(self, watch: Watchers) -> None:
        """Get all files of the recipe, and write the generated text."""
        fetch_text(self.run, watch)
        write_generated(self.run)

    def carry_out(self, watch: Watchers) -> Table:
        """Prepare everything. The results contain the hash of each file that was read."""
        data = data_directory(self.run)
        files = {str(name): _stored(data / name) for name in file_names(self.run.recipe)}
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
                    masks=() if recipe.variation is None else MASKS,
                    on_read=watch.learning,
                )
            except ConfigError:
                size = size * 3 // 4
                if least is None or size < least:
                    raise

    def _lines(self) -> Iterator[str]:
        """All text, in an order that is independent of the translation direction."""
        for text in self.run.recipe.texts:
            for paths in self._text(text):
                for path in sorted(paths, reverse=True):
                    yield from read_text(path)

    def _ids(self, name: str, watch: Watchers) -> Manifest:
        recipe = self.run.recipe
        job = Preparation(
            inputs=tuple(LinePair(*paths) for paths in self._corpora()[name]),
            tokenizer=self.run.vocabulary,
            output=self.run.corpus(name),
            cleaning=recipe.cleaning,
            sampling=None if name == DEV else recipe.vocabulary.sampling,
            variation=self._variation(name),
            languages=(recipe.source_language, recipe.target_language),
        )
        return prepare(job, watch=watch.preparing(name))

    def _variation(self, name: str) -> Variation | None:
        """The changes to a corpus. In the development set, spans are masked as in translation."""
        variation = self.run.recipe.variation
        if name == DEV and variation is not None:
            return Variation()
        # Text that was changed before it was translated is not changed again.
        return None if self._translated().get(name, {}).get("varied") else variation

    def _corpora(self) -> dict[str, list[Paths]]:
        """The file pairs of each corpus."""
        recipe = self.run.recipe
        texts = {text.name: self._text(text) for text in recipe.texts}
        return {**texts, DEV: [self._paths(pair) for pair in recipe.dev]}

    def _text(self, text: RecipeText) -> list[Paths]:
        """The file pairs of a text: one, or the chunks that a model has translated."""
        if text.is_written:
            return [self.run.generated(text.name)]
        if not text.translator:
            assert text.source is not None
            assert text.target is not None
            return [self._paths(TextPair(source=text.source, target=text.target))]
        directory = self.run.translated(text.name)
        n_chunks = self._translated()[text.name]["chunks"]
        recipe = self.run.recipe
        languages = (recipe.source_language, recipe.target_language)
        return [chunk_paths(directory, number, languages) for number in range(n_chunks)]

    def _translated(self) -> Table:
        """The results of the translated texts, by name."""
        results = self.run.results("translate")
        if results is None and "translate" in self.run.recipe.stages:
            raise ConfigError(
                f"{self.run.directory}: nothing is translated yet; run `translate` first"
            )
        texts: Table = {} if results is None else results["texts"]
        return texts

    def _paths(self, pair: TextPair) -> Paths:
        data = data_directory(self.run)
        return data / pair.source, data / pair.target


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
