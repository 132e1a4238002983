"""The first stage of a recipe with a translator: translate text, and drop what cannot be used.

The missing side of a text is written by a model (forward translation and back-translation), or the
target side is replaced (distillation). The sentences are changed by the recipe's `variation`
before they are translated, so that the translator sees what the new model will read. Pairs are
stored in chunks. A chunk is complete if its JSON file exists, so a stopped stage resumes after the
last complete chunk.

    translated/NAME/settings.json      what the translations depend on
    translated/NAME/00000.en.zst       the source sentences of the first chunk
    translated/NAME/00000.de.zst       the target sentences
    translated/NAME/00000.json         their number, and those of the dropped pairs
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from transept import config
from transept.api.models import load
from transept.api.texts import Translation
from transept.api.transducer import Transducer
from transept.apps.recipes.chunks import ChunkWriter, SearchedChunk, WrittenSentence, chunk_counts
from transept.apps.recipes.reading import Lines, SentenceVariation, varied_chunks
from transept.apps.recipes.recipe import RecipeText, fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Stage, Watchers
from transept.apps.recipes.texts import data_directory, fetch_text, read_aligned
from transept.apps.recipes.translators import model_of, weights_of
from transept.errors import ConfigError
from transept.progress import Watch
from transept.runtime.storage import digest, make_directory, write_json
from transept.runtime.workers import Workers
from transept.text.files import read_lines
from transept.text.variation import Variation


class TranslateStage(Stage):
    """Translate the texts that name a translator."""

    name = "translate"

    def inputs(self) -> Table:
        """Everything that the text depends on, except files. Weights of texts only affect training.

        The results contain the hashes of the files and the translators. So a work directory can be
        moved without them.
        """
        recipe = self.run.recipe
        texts = [
            (text.name, str(text.source), str(text.target), text.translator, text.max_lines)
            for text in self._texts()
        ]
        settings = [recipe.translation, recipe.source_language, recipe.target_language]
        if recipe.variation is not None:
            settings.append(recipe.variation)
        return {"recipe": fingerprint(texts, *settings)}

    def fetch(self, watch: Watchers) -> None:
        """Get all files of the recipe."""
        fetch_text(self.run, watch)

    def carry_out(self, watch: Watchers) -> Table:
        """Translate the remaining chunks of each text."""
        loaded: dict[Lines, Transducer] = {}
        results = {}
        for text in self._texts():
            models = tuple(str(model_of(self.run, name)) for name in text.translator)
            if models not in loaded:
                loaded[models] = load(*models, engine=self.run.recipe.translation.engine)
            work = TextWork(self.run, text, loaded[models], models)
            results[text.name] = work.carry_out(watch.translating(text.name))
        return {"texts": results, "seconds": sum(one["seconds"] for one in results.values())}

    def summary(self, record: Table) -> str:
        """The number of pairs and the translators."""
        texts = record["results"]["texts"].values()
        read, kept = (sum(one[key] for one in texts) for key in ("read", "kept"))
        names = dict.fromkeys(name for text in self._texts() for name in text.translator)
        return f"{kept:,} of {read:,} sentences, by {', '.join(names)}"

    def is_whole(self) -> bool:
        """Whether all chunks exist."""
        results = self.run.results("translate")
        assert results is not None
        return all(
            len(chunk_counts(self.run.translated(name))) == recorded["chunks"]
            for name, recorded in results["texts"].items()
        )

    def _texts(self) -> list[RecipeText]:
        return [text for text in self.run.recipe.texts if text.translator]


@dataclass(frozen=True, slots=True)
class TextWork:
    """The translation of one text."""

    run: RecipeRun
    text: RecipeText
    transducer: Transducer
    models: Lines
    """The directories of the translators."""

    def carry_out(self, watch: Watch) -> Table:
        """Translate the remaining chunks, and describe all."""
        make_directory(self._directory)
        settings = self._settings()
        self._claim(settings)
        done = chunk_counts(self._directory)
        size = self.run.recipe.translation.chunk
        n_lines = sum(1 for _ in islice(read_lines(self._inputs[0]), self.text.max_lines))

        def of_all(n_done: int, _: int | None) -> None:
            watch(n_done, n_lines)

        of_all(min(n_lines, len(done) * size), None)
        lines = islice(read_aligned(self._inputs), len(done) * size, self.text.max_lines)
        with closing(varied_chunks(lines, size, self._variation())) as chunks:
            done += self._written(self._searched(chunks, len(done), of_all))
        return {**settings, **_summed(done), **_hashes(self._directory)}

    def _written(self, chunks: Iterator[SearchedChunk]) -> Iterator[Table]:
        """Write chunks. A worker does so during the search of the next one."""
        recipe = self.run.recipe
        write = ChunkWriter(
            self._directory,
            (recipe.source_language, recipe.target_language),
            is_backward=self.text.source is None,
            tokenizer=self.transducer.target_tokenizer,
            variation=(recipe.variation if self._is_varied else None) or Variation(),
        )
        yield from map(write, islice(chunks, 1))  # most texts have one
        second = list(islice(chunks, 1))
        if second:
            with Workers([write], "translation writer", dict[str, Any]) as worker:
                yield from worker.map(chain(second, chunks), 1)

    @property
    def _directory(self) -> Path:
        return self.run.translated(self.text.name)

    @property
    def _inputs(self) -> list[Path]:
        """The given files. The first one is translated."""
        sides = (self.text.source, self.text.target)
        return [data_directory(self.run) / path for path in sides if path is not None]

    @property
    def _is_varied(self) -> bool:
        """Whether the text is changed. A translator without masks needs unchanged text."""
        tokenizers = (self.transducer.source_tokenizer, self.transducer.target_tokenizer)
        return self.run.recipe.variation is not None and all(one.masks for one in tokenizers)

    def _variation(self) -> SentenceVariation:
        recipe = self.run.recipe
        return SentenceVariation(
            recipe.variation if self._is_varied else None,
            (recipe.source_language, recipe.target_language),
            has_source=self.text.source is not None,
            has_target=self.text.target is not None,
        )

    def _settings(self) -> Table:
        recipe = self.run.recipe
        return {
            "translator": list(self.text.translator),
            "weights": [weights_of(Path(model)) for model in self.models],
            "engine": self.transducer.engine.name,
            "files": {path.name: digest(path) for path in self._inputs},
            "max_lines": self.text.max_lines,
            "translation": config.as_table(recipe.translation),
            "varied": self._is_varied,
            "variation": config.as_table(recipe.variation) if self._is_varied else {},
        }

    def _claim(self, settings: Table) -> None:
        """Write the settings of the first chunk, or compare them.

        Another machine may have another engine.
        """
        path = self._directory / "settings.json"
        if not path.exists():
            write_json(path, settings)
            return
        before = json.loads(path.read_bytes())
        keys = settings.keys() - {"engine"}
        changed = sorted(key for key in keys if before.get(key) != settings[key])
        if changed:
            raise ConfigError(
                f"{self._directory}: was begun with other values of {', '.join(changed)}; remove "
                "it to translate the text again"
            )

    def _searched(
        self, chunks: Iterable[list[str]], first: int, watch: Watch
    ) -> Iterator[SearchedChunk]:
        """Translate chunks, numbered from `first` on. Equal sentences are translated once."""
        translation = self.run.recipe.translation
        search: dict[str, Any] = asdict(translation)
        for key in ("engine", "chunk"):
            del search[key]
        for number, read in enumerate(chunks, first):
            begin = time.monotonic()
            unique = [*dict.fromkeys(filter(None, read))]
            later = partial(_later, watch, number * translation.chunk)
            # `raw`: masks are copied by the model, and the output is not changed afterwards.
            found = self.transducer.translate(unique, split=False, raw=True, watch=later, **search)
            written = dict(zip(unique, map(_in_one_line, found), strict=True))
            watch(number * translation.chunk + len(read), None)
            yield SearchedChunk(number, read, written, time.monotonic() - begin)


def _later(watch: Watch, first: int, done: int, total: int | None) -> None:
    """Report the progress of a chunk, after the sentences of the earlier ones."""
    watch(first + done, None)


def _in_one_line(found: Translation) -> WrittenSentence:
    return WrittenSentence(
        text=" ".join(found.text.split("\n")).strip(),
        finished=all(one.outputs[0].finished for one in found.sentences),
        too_long=bool(found.too_long),
    )


def _summed(chunks: Sequence[Table]) -> Table:
    """The counts of all chunks together."""
    dropped = Counter[str]()
    for chunk in chunks:
        dropped.update(chunk["dropped"])
    total = {
        key: sum(chunk[key] for chunk in chunks) for key in ("read", "kept", "tokens", "seconds")
    }
    rate = total["tokens"] / total["seconds"] if total["seconds"] else 0.0
    return {"chunks": len(chunks), **total, "tokens_per_second": rate, "dropped": dict(dropped)}


def _hashes(directory: Path) -> Table:
    """One hash of all text."""
    return {"sha256": fingerprint(*map(digest, sorted(directory.glob("*.zst"))))}
