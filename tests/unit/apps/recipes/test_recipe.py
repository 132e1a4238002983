"""The bundled recipes match the paper and use text with suitable licences."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import Averaging, Recipe, RecipeText
from transept.decoding.config import SearchConfig
from transept.errors import ConfigError
from transept.experiment import Experiment

CONFIGS = Path(__file__).resolve().parents[4] / "configs"


@pytest.mark.parametrize("size", ["base", "big"])
def test_english_german_recipe_matches_the_paper(size: str) -> None:
    ours = recipe.load(f"wmt14-en-de-{size}")
    assert ours.experiment == config.load(Experiment, CONFIGS / f"{size}.toml")
    assert ours.vocabulary.kind == "bpe"
    assert ours.average.last == {"base": 5, "big": 20}[size]
    assert ours.search == SearchConfig(beam_size=4, length_penalty=0.6, max_length_extra=50)


@pytest.mark.parametrize("minutes", [None, 60.0])
@pytest.mark.parametrize("name", recipe.names())
def test_interval_spaces_the_checkpoints_with_and_without_minutes(
    name: str, minutes: float | None
) -> None:
    ours = recipe.load(name)
    checkpoint = ours.within(minutes).experiment.checkpoint
    whole_run = 10800.0 if minutes is None else 60 * minutes
    expected = ours.average.interval * whole_run
    assert checkpoint.seconds_between(whole_run) == pytest.approx(expected)
    assert checkpoint.keep == ours.average.last


def test_trained_for_fewer_steps_keeps_the_intervals_in_proportion() -> None:
    short = recipe.load("demo").trained_for(232).experiment
    assert short.training.max_steps == 232
    assert (short.validation.every_steps, short.checkpoint.every_steps) == (58, 6)
    loaded = recipe.load("demo", ("experiment.validation.bleu_every_steps=1160",))
    assert loaded.trained_for(232).experiment.validation.bleu_every_steps == 116
    shortest = recipe.load("wmt14-en-de-base").trained_for(1).experiment
    assert (shortest.validation.every_steps, shortest.checkpoint.every_steps) == (1, None)


def test_english_french_recipe_matches_the_paper() -> None:
    ours, german = recipe.load("wmt14-en-fr-big"), recipe.load("wmt14-en-de-big")
    model = replace(german.experiment.model, dropout=0.1, vocab_size=32_000)
    assert ours.experiment == replace(german.experiment, model=model)
    assert (ours.vocabulary.kind, ours.average.last) == ("unigram", 20)


def test_the_other_direction_reads_the_same_files() -> None:
    there, back = (recipe.load(f"europarl-{pair}-small") for pair in ("en-de", "de-en"))
    swapped: dict[str, Any] = {
        key: tuple(
            replace(pair, source=pair.target, target=pair.source) for pair in getattr(there, key)
        )
        for key in ("texts", "dev", "tests")
    }
    languages: dict[str, Any] = {"source_language": "de", "target_language": "en"}
    assert replace(there, title=back.title, **languages, **swapped) == back


@pytest.mark.parametrize("name", recipe.names())
def test_every_text_has_a_licence(name: str) -> None:
    for text in recipe.load(name).texts:
        assert text.licence
        assert text.attribution


def test_invalid_recipes_are_rejected() -> None:
    base = recipe.load("europarl-en-de-base")
    with pytest.raises(ConfigError, match="two of them have the same name"):
        replace(base, texts=(base.texts[0], base.texts[0]))
    with pytest.raises(ConfigError, match="dev: \\(\\) names no files"):
        replace(base, dev=())
    with pytest.raises(ConfigError, match="one of them has the name of the development set"):
        replace(base, texts=(replace(base.texts[0], name="dev"),))
    with pytest.raises(ConfigError, match="must be above 0 and at most 1"):
        Averaging(last=100)


def test_recipe_round_trips_through_toml(tmp_path: Path) -> None:
    for name in recipe.names():
        ours = recipe.load(name)
        (tmp_path / "recipe.toml").write_text(config.dump(ours), encoding="utf-8")
        assert config.load(Recipe, tmp_path / "recipe.toml") == ours


def test_languages_of_the_recipe_replace_their_placeholders(tmp_path: Path) -> None:
    given = config.dump(recipe.load("demo")).replace('"train.en"', '"{target}/a.{source}.xz"')
    (tmp_path / "mine.toml").write_text(given, encoding="utf-8")
    ours = recipe.load(str(tmp_path / "mine.toml"), ("source_language=fr", "target_language=en"))
    assert ours.texts[0].source == Path("en/a.fr.xz")
    back = recipe.load("all-fr-en-base")
    assert back.texts[0].source == Path("en-fr/europarl/train.fr.xz")
    assert recipe.load("all-de-en-base").texts[-1].translator == ("en-de",)
    assert recipe.load("distil-fr-en-small").texts[0].translator == ("all-fr-en-base",)


@pytest.mark.parametrize("pair", ["en-de", "de-en", "en-fr", "fr-en"])
def test_student_learns_from_the_texts_of_its_teacher(pair: str) -> None:
    teacher, student = recipe.load(f"all-{pair}-base"), recipe.load(f"distil-{pair}-small")
    assert student.variation == teacher.variation is not None
    assert student.vocabulary.sampling is None
    assert (student.dev, student.tests) == (teacher.dev, teacher.tests)
    shared, taught_with = (
        [text for text in each.texts if text.name != "common-voice"] for each in (student, teacher)
    )
    for ours, theirs in zip(shared, taught_with, strict=True):
        assert ours.translator in ((), (f"all-{pair}-base",))
        assert ours.weight >= theirs.weight
        assert ours.max_lines == theirs.max_lines or ours.name == "europarl"
        ours = replace(ours, weight=theirs.weight, max_lines=theirs.max_lines)
        assert replace(ours, translator=()) == theirs
    # Technical text and terms keep the translations of people.
    taught = {text.name for text in shared if text.translator}
    assert {"europarl", "tatoeba", "news"} < taught
    assert not {"ding-terms", "libreoffice-help", "times-of-day"} & taught
    assert student.texts[-1].target is None
    assert student.stages[0] == "translate"
    if pair in ("en-de", "de-en"):
        assert teacher.texts[-1].source is None
        assert teacher.stages[0] == "translate"


def test_generated_text_is_rejected_for_other_languages() -> None:
    base = recipe.load("all-en-de-base")
    with pytest.raises(ConfigError, match="exists only in English and German; remove it"):
        replace(base, target_language="fr")
    with pytest.raises(ConfigError, match="cannot be combined with generated; omit one"):
        RecipeText(name="x", licence="y", source=Path("z"), generated="times-of-day")
