"""Recipes whose training text is written by a model: stopped, resumed, and rejected."""

import dataclasses
import json
from pathlib import Path

import pytest

from transept import ModelConfig, Transducer, Transformer
from transept.apps.recipes import recipe
from transept.apps.recipes.prepare import Prepare
from transept.apps.recipes.reading import SentenceVariation, varied_chunks
from transept.apps.recipes.recipe import Recipe, RecipeText, TextPair, TextTranslation
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Watchers, do
from transept.apps.recipes.texts import read_aligned
from transept.apps.recipes.translate import TextWork, TranslateStage
from transept.apps.recipes.translators import check_order
from transept.config import structure
from transept.errors import ConfigError, DataError
from transept.shelf import find_model
from transept.text.files import read_text
from transept.text.spans import MASKS
from transept.text.training import train_tokenizer
from transept.text.variation import Variation

ENGLISH = (
    "Good morning.",
    "",
    "I would like a cup of tea.",
    "Good morning.",
    "Where is the station?",
)
GERMAN = ("Guten Morgen!", "", "Ich möchte Tee.", "Guten Tag.", "Wo ist der Bahnhof?")


def text(**values: object) -> RecipeText:
    return structure(RecipeText, {"name": "tea", "licence": "none", **values})


@pytest.fixture
def run(tmp_path: Path) -> RecipeRun:
    """A recipe with one text, which the bundled model translates in chunks of two lines."""
    data = tmp_path / "data"
    data.mkdir()
    for name, lines in {"tea.en": ENGLISH, "tea.de": GERMAN}.items():
        (data / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    chosen = dataclasses.replace(
        recipe.load("europarl-en-de-small"),
        texts=(text(source="tea.en", target="tea.de", translator="en-de"),),
        dev=(TextPair(source=Path("tea.en"), target=Path("tea.de")),),
        tests=(),
        translation=TextTranslation(chunk=2, engine="native"),
    )
    return RecipeRun(name="tea", recipe=chosen, directory=tmp_path / "tea", data=data)


def changed(run: RecipeRun, **values: object) -> RecipeRun:
    return dataclasses.replace(run, recipe=dataclasses.replace(run.recipe, **values))  # type: ignore[arg-type]


def pairs(run: RecipeRun) -> list[tuple[str, ...]]:
    """The pairs that were written."""
    files = (sorted(run.translated("tea").glob(f"*.{side}.zst")) for side in ("en", "de"))
    return [pair for paths in zip(*files, strict=True) for pair in read_aligned(paths)]


def test_target_of_a_parallel_text_is_replaced(run: RecipeRun) -> None:
    done = do(TranslateStage(run), Watchers())
    assert done is not None
    assert done.what == "4 of 5 sentences, by en-de"
    assert pairs(run) == [
        ("Good morning.", "Guten Morgen."),
        ("I would like a cup of tea.", "Ich hätte gerne eine Tasse Tee."),
        ("Good morning.", "Guten Morgen."),
        ("Where is the station?", "Wo ist der Bahnhof?"),
    ]
    results = run.results("translate")
    assert results is not None
    recorded = results["texts"]["tea"]
    assert (recorded["chunks"], recorded["read"], recorded["kept"]) == (3, 5, 4)
    assert recorded["dropped"] == {"empty": 1}
    assert recorded["tokens"] > 16
    assert recorded["tokens_per_second"] == recorded["tokens"] / recorded["seconds"]
    assert len(recorded["weights"][0]) == 64
    assert recorded["engine"] == "native"


def test_text_with_only_a_target_is_translated_back(run: RecipeRun) -> None:
    run = changed(run, texts=(text(target="tea.de", translator="de-en"),))
    do(TranslateStage(run), Watchers())
    assert [target for _, target in pairs(run)] == [line for line in GERMAN if line]
    assert pairs(run)[-1][0].endswith("the station?")


def test_text_is_translated_up_to_its_maximum_number_of_lines(run: RecipeRun) -> None:
    first = text(source="tea.en", target="tea.de", translator="en-de", max_lines=3)
    run = changed(run, texts=(first,))
    do(TranslateStage(run), Watchers())
    assert [source for source, _ in pairs(run)] == [ENGLISH[0], ENGLISH[2]]
    results = run.results("translate")
    assert results is not None
    assert (results["texts"]["tea"]["chunks"], results["texts"]["tea"]["read"]) == (2, 3)


def test_stopped_translation_resumes_and_gives_the_same_text(
    run: RecipeRun, tmp_path: Path
) -> None:
    class Stopped(Exception):  # noqa: N818 - not an error
        pass

    def stop(done: int, total: int | None) -> None:
        if done > 2:
            raise Stopped

    with pytest.raises(Stopped):
        do(TranslateStage(run), Watchers(translating=lambda name: stop))
    assert run.results("translate") is None
    first = run.translated("tea") / "00000.json"
    assert [path.name for path in run.translated("tea").glob("0*.json")] == [first.name]
    before = first.stat().st_mtime_ns
    seen: list[tuple[str, int, int | None]] = []
    watchers = Watchers(translating=lambda name: lambda *counts: seen.append((name, *counts)))
    done = do(TranslateStage(run), watchers)
    assert (seen[0], seen[-1]) == (("tea", 2, 5), ("tea", 5, 5))
    assert done is not None
    assert not done.already
    assert first.stat().st_mtime_ns == before
    again = do(TranslateStage(run), Watchers())
    assert again is not None
    assert again.already
    whole = dataclasses.replace(run, directory=tmp_path / "whole")
    do(TranslateStage(whole), Watchers())
    files = [
        {path.name: path.read_bytes() for path in each.translated("tea").glob("*.zst")}
        for each in (run, whole)
    ]
    assert len(files[0]) == 6
    assert files[0] == files[1]


def test_text_begun_with_another_translator_is_rejected(run: RecipeRun) -> None:
    do(TranslateStage(run), Watchers())
    (run.records.directory / "translate.json").unlink()
    path = run.translated("tea") / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"weights": ["0" * 64]}))
    with pytest.raises(ConfigError, match="begun with other values of weights; remove it"):
        do(TranslateStage(run), Watchers())


def test_files_of_different_length_are_rejected(run: RecipeRun, tmp_path: Path) -> None:
    (tmp_path / "data" / "tea.de").write_text("Guten Morgen!\n")
    with pytest.raises(DataError, match=r"tea\.de: ends at line 1, but .*tea\.en is longer"):
        do(TranslateStage(run), Watchers())


def test_translated_text_is_prepared(run: RecipeRun) -> None:
    with pytest.raises(ConfigError, match="nothing is translated yet; run `translate` first"):
        do(Prepare(run), Watchers())
    do(TranslateStage(run), Watchers())
    prepare = Prepare(run)
    inputs = prepare.inputs()
    assert len(inputs["translated"]["tea"]) == 64
    lines = sorted(line for path in run.translated("tea").glob("*.zst") for line in read_text(path))
    assert sorted(prepare._lines()) == lines


@pytest.mark.parametrize(
    ("has_source", "has_target", "lines", "expected"),
    [
        (True, True, ("I saw Berlin.", "Ich sah Berlin."), f"i saw {MASKS[0]}"),
        (True, False, ("I saw Berlin.",), "i saw berlin"),
        (False, True, ("Ich sah Berlin.",), "Ich sah Berlin"),
        (True, False, ("See https://example.org.",), f"see {MASKS[0]}"),
        (True, False, ("",), ""),
    ],
)
def test_text_is_varied_before_it_is_translated(
    has_source: bool, has_target: bool, lines: tuple[str, ...], expected: str
) -> None:
    """Without the other side, names are unknown. The target is not written in lower case."""
    nearly_all = Variation(names=0.999, unstopped=0.999, lowercase=0.999, misspelt=0.999)
    found = {
        SentenceVariation(
            dataclasses.replace(nearly_all, seed=seed), ("en", "de"), has_source, has_target
        )([lines])[0]
        for seed in range(12)
    }
    assert expected in found
    assert (found == {expected}) == (not has_source or not lines[0])


@pytest.mark.parametrize("side", ["source", "target"])
def test_source_is_misspelt_but_not_read_or_written_so(run: RecipeRun, side: str) -> None:
    given, model = ("tea.en", "en-de") if side == "source" else ("tea.de", "de-en")
    run = changed(run, texts=(text(translator=model, **{side: given}),))
    do(TranslateStage(run), Watchers())
    correct = pairs(run)
    hasty = changed(run, variation=Variation(misspelt=0.999))
    hasty = dataclasses.replace(hasty, directory=run.directory.with_name("hasty"))
    do(TranslateStage(hasty), Watchers())
    sources, targets = zip(*pairs(hasty), strict=True)
    assert list(targets) == [target for _, target in correct]
    assert not {*sources} & {correct[1][0], correct[3][0]}, "the longer ones are misspelt"


def test_translator_without_masks_reads_unchanged_text(run: RecipeRun) -> None:
    run = changed(run, variation=Variation(lowercase=0.999))
    vocabulary = train_tokenizer([*ENGLISH, *GERMAN] * 20, vocab_size=300)
    network = Transformer(ModelConfig(vocab_size=300, n_layers=1, d_model=8, d_ff=8, n_heads=2))
    plain = Transducer([network], vocabulary, vocabulary)
    (tea,), models = run.recipe.texts, (str(find_model("en-de")),)
    recorded = TextWork(run, tea, plain, models).carry_out(Watchers().translating("tea"))
    assert (recorded["read"], recorded["varied"], recorded["variation"]) == (5, False, {})


def test_chunks_varied_by_workers_are_those_varied_here() -> None:
    vary = SentenceVariation(Variation(inserted=0.5), ("en", "de"), True, False)
    lines = [(f"Sentence {number} is here.",) for number in range(25)]
    chunks = list(varied_chunks(lines, 10, vary))
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert [line for chunk in chunks for line in chunk] == vary(lines)


def test_recipes_that_wait_for_each_other_are_rejected(run: RecipeRun, tmp_path: Path) -> None:
    for name, other in (("tea", "coffee"), ("coffee", "tea")):
        content = f'extends = "{recipe.SHELF / "europarl-en-de-small.toml"}"\n[[texts]]\n'
        content += 'name = "tea"\nlicence = "none"\nsource = "tea.en"\n'
        content += f'translator = ["{tmp_path / other}.toml"]\n'
        (tmp_path / f"{name}.toml").write_text(content)
    run = changed(run, texts=recipe.load(str(tmp_path / "tea.toml")).texts)
    with pytest.raises(ConfigError, match="is circular: tea -> coffee -> tea"):
        check_order(run)


def test_incomplete_texts_are_rejected() -> None:
    with pytest.raises(ConfigError, match="target: None is not a file; name it, or a translator"):
        text(source="tea.en")
    with pytest.raises(ConfigError, match="source: None and no target: name the file to translate"):
        text(translator="en-de")
    assert text(source="a", translator="en-de") == text(source="a", translator=["en-de"])


def test_recipe_without_translators_has_no_stage_for_them(run: RecipeRun) -> None:
    assert run.recipe.stages[:2] == ("translate", "prepare")
    plain: Recipe = recipe.load("europarl-en-de-small")
    assert plain.stages[0] == "prepare"
