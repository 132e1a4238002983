"""The files of a recipe in the data directory."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from transept.apps.recipes import sentences
from transept.apps.recipes.phrases import phrases
from transept.apps.recipes.recipe import Recipe, RecipeText
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Watchers
from transept.data.fetching.datasets import DATASETS
from transept.data.fetching.fetch import fetch
from transept.errors import Argument, ConfigError, DataError
from transept.runtime.storage import make_directory
from transept.text.files import read_lines, write_sentences


def data_directory(run: RecipeRun) -> Path:
    """The directory of the text."""
    if run.recipe.sentences is not None:
        return run.text
    if run.data is None:
        raise ConfigError(
            f"{run.directory}: the text is not prepared yet: give ", Argument("data"),
            f", the directory with {file_names(run.recipe)[0]}",
        )  # fmt: skip
    return run.data


def file_names(recipe: Recipe) -> list[Path]:
    """The files of a recipe, relative to the data directory."""
    texts = [(text.source, text.target) for text in recipe.texts]
    others = [(pair.source, pair.target) for pair in (*recipe.dev, *recipe.tests)]
    paths = (path for pair in (*texts, *others) for path in pair)
    return [path for path in paths if path is not None]


def fetch_text(run: RecipeRun, watch: Watchers) -> None:
    """Download or write the text, and check that all files of the recipe exist."""
    data, recipe = data_directory(run), run.recipe
    watch.part("text")
    if recipe.dataset is not None:
        fetch(DATASETS[recipe.dataset], data, watch=watch.downloading)
    if recipe.sentences is not None and not data.exists():
        languages = (recipe.source_language, recipe.target_language)
        sentences.write(sentences.splits_of(recipe), data, languages)
    missing = [str(name) for name in file_names(recipe) if not (data / name).is_file()]
    if missing:
        listed = "\n  ".join(dict.fromkeys(missing))
        raise DataError(f"{data}: lacks files of this recipe:\n  {listed}")


def write_generated(run: RecipeRun) -> None:
    """Write the texts that the recipe generates or shortens."""
    for text in run.recipe.texts:
        if text.is_written:
            for path, side in zip(run.generated(text.name), _sides(run, text), strict=True):
                make_directory(path.parent)
                write_sentences(path, side)


def _sides(run: RecipeRun, text: RecipeText) -> tuple[Sequence[str], ...]:
    """The two sides of a generated or shortened text."""
    if text.generated is not None:
        english, german = zip(*phrases(), strict=True)
        return (english, german) if run.recipe.source_language == "en" else (german, english)
    assert text.source is not None
    assert text.target is not None
    data = data_directory(run)
    pairs = islice(read_aligned([data / text.source, data / text.target]), text.max_lines)
    return tuple(zip(*pairs, strict=True))


def read_aligned(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of files side by side. Bytes that are not UTF-8 become U+FFFD."""
    for number, lines in enumerate(zip_longest(*map(read_lines, paths))):
        if None in lines:
            short = paths[lines.index(None)]
            others = " and ".join(str(path) for path in paths if path != short)
            raise DataError(
                f"{short}: ends at line {number:,}, but {others} is longer: line n of one must be "
                "the translation of line n of the other"
            )
        yield tuple(line.decode("utf-8", errors="replace").strip() for line in lines)
