"""From a trained bundle to text, in Python."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration.workshop import ENGLISH, GERMAN, Workshop, run, write_pairs

import transept
from transept import shelf
from transept.errors import CheckpointError, ConfigError, VocabularyError
from transept.shelf import find_model

TEXTS = ["one two three", "", "seven", "ten nine eight seven six five", "four four"]


def test_a_run_translates_and_an_empty_text_stays_empty(trained: Path) -> None:
    results = transept.load(trained).translate(TEXTS)
    assert [result.source for result in results] == TEXTS
    assert results[1].text == ""
    words = set(" ".join(result.text for result in results).split())
    assert words & {"eins", "zwei", "drei", "sieben", "zehn", "vier"}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_results_do_not_depend_on_batch_order_or_n_best(trained: Path, beam_size: int) -> None:
    model = transept.load(trained)
    together = model.translate(TEXTS, beam_size=beam_size, n_best=beam_size)
    backwards = model.translate(TEXTS[::-1], beam_size=beam_size)[::-1]
    for text, one, other in zip(TEXTS, together, backwards, strict=True):
        alone = model.translate(text, beam_size=beam_size)
        assert alone.text == one.text == other.text
        assert [alone.score, other.score] == pytest.approx([one.score] * 2, abs=1e-4)


def test_n_best_is_sorted_and_distinct(trained: Path) -> None:
    result = transept.load(trained).translate("one two three", n_best=4)
    scores = [output.score for output in result.outputs]
    # Outputs with the same text are one.
    assert 1 < len({output.text for output in result.outputs}) == len(result.outputs) <= 4
    assert scores == sorted(scores, reverse=True)


def test_a_score_is_what_the_search_found(trained: Path) -> None:
    model = transept.load(trained)
    for result in model.translate(TEXTS, beam_size=2, length_penalty=0.0):
        pair = model.score(result.source, result.text)
        assert pair.log_probability == pytest.approx(result.score, abs=1e-4)
        assert sum(pair.token_log_probabilities) == pair.log_probability


def test_a_score_by_a_bundled_model_is_what_the_search_found() -> None:
    model = transept.load("en-de")
    texts = ["The Balkan war ended in 1913.", "An army spokesman said that.", "Good morning."]
    found = model.translate(texts, raw=True)
    scores = model.score(texts, [one.text for one in found])
    for one, pair in zip(found, scores, strict=True):
        assert pair.log_probability > one.outputs[0].log_probability - 1e-3


def test_scoring_reports_progress(trained: Path) -> None:
    progress: list[tuple[int, int]] = []
    sources = ["one two " * n for n in range(12)]
    transept.load(trained).score(sources, sources, watch=lambda *done: progress.append(done))
    assert len(progress) > 1
    assert progress == sorted(progress)
    assert progress[-1] == (12, 12)


def test_alignments_find_the_words_that_correspond(trained: Path, workshop: Workshop) -> None:
    model = transept.load(trained)
    lines = (workshop.directory / "dev.en").read_text().splitlines()
    found, right = 0, 0
    for result in model.translate(lines, alignments=True):
        source, target = result.source.split(), result.text.split()
        for i, j in result.alignment or ():
            if target[j] in GERMAN:
                found += 1
                right += source[i] == ENGLISH[GERMAN.index(target[j])]
    assert right / found > 0.4  # by chance it would be about 0.2; the model has learnt a little


def test_the_limit_is_the_longest_that_was_trained_on(trained: Path) -> None:
    assert transept.load(trained).max_source_length == 64


# --- where models are ------------------------------------------------------------------------


def test_newest_average_of_a_run_is_loaded(trained: Path) -> None:
    assert find_model(trained) == trained / "average-3"
    assert find_model(trained / "checkpoints/step-00000400").name == "step-00000400"


def test_without_a_shipped_model_one_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "SHELF", tmp_path / "nothing")
    with pytest.raises(ConfigError, match="no model given, and this installation has no"):
        transept.load()


def test_directory_without_a_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is neither a directory nor a bundled model"):
        transept.load(tmp_path / "absent")
    with pytest.raises(CheckpointError, match="is not a model directory"):
        transept.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="is a file"):
        transept.load(tmp_path / "file")


def test_bundled_model_is_loaded_by_name(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "SHELF", tmp_path)
    for name in (shelf.DEFAULT, "small"):
        shutil.copytree(trained / "average-3", tmp_path / name)
    assert find_model() == tmp_path / shelf.DEFAULT
    assert transept.load().translate("one").text == transept.load("small").translate("one").text
    with pytest.raises(CheckpointError, match=r"smal: .* Bundled models: en-de, small"):
        transept.load("smal")


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "config.toml", "tokenizer/tokenizer.model"]
)
def test_missing_or_altered_file_is_reported(trained: Path, tmp_path: Path, name: str) -> None:
    bundle = tmp_path / "model"
    shutil.copytree(trained / "average-3", bundle)
    altered = bytearray((bundle / name).read_bytes())
    altered[-1] ^= 1
    (bundle / name).write_bytes(altered)
    with pytest.raises(CheckpointError, match=rf"{name}: is damaged: its sha256"):
        transept.load(bundle)
    (bundle / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}: cannot be read"):
        transept.load(bundle)


def test_missing_device_is_reported(trained: Path) -> None:
    for device in ("quantum", "cuda:99"):
        with pytest.raises(
            ConfigError, match=rf"^device: '{device}' cannot be used: .*; choose auto"
        ):
            transept.load(trained, device=device)


# --- several models --------------------------------------------------------------------------


def test_models_with_one_vocabulary_form_an_ensemble(trained: Path) -> None:
    last, earlier = trained / "checkpoints/step-00000400", trained / "checkpoints/step-00000380"
    both = transept.load(last, earlier)
    alone = transept.load(last)
    assert len(both.networks.models) == 2
    assert both.translate("one").score != pytest.approx(alone.translate("one").score, abs=1e-6)
    result = both.translate("one two", alignments=True)
    pair = both.score("one two", result.text)
    assert pair.log_probability == pytest.approx(result.outputs[0].log_probability, abs=1e-4)


def test_load_takes_a_list_of_models_as_an_ensemble(trained: Path) -> None:
    last, earlier = trained / "checkpoints/step-00000400", trained / "checkpoints/step-00000380"
    listed = transept.load([last, str(earlier)], engine="native")
    apart = transept.load(last, earlier, engine="native")
    assert len(listed.networks.models) == 2
    assert listed.translate("one").text == apart.translate("one").text


@pytest.mark.parametrize("wrong", [3, [], [None]])
def test_load_rejects_invalid_models(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="models: expected the name or path of a model"):
        transept.load(wrong)


def test_models_with_two_vocabularies_are_rejected(
    trained: Path, workshop: Workshop, tmp_path: Path
) -> None:
    texts = write_pairs(tmp_path / "train", 300, 7)
    run("tokenizer", "train", "--input", *texts, "--vocab-size", "300",
        "--output", tmp_path / "vocabulary", "--kind", "unigram")  # fmt: skip
    source, target = texts
    run("data", "prepare", "--source", source, "--target", target, "--tokenizer",
        tmp_path / "vocabulary", "--output", tmp_path / "ids")  # fmt: skip
    corpora = [f'data.train=[{{path="{tmp_path}/ids"}}]', "training.max_steps=5"]
    nothing = [f'data.dev="{tmp_path}/ids"']
    assert run("train", workshop.config, *corpora, *nothing, "--output", tmp_path / "other") == 0
    with pytest.raises(VocabularyError, match="different source vocabularies"):
        transept.load(trained, tmp_path / "other")
