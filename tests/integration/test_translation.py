"""From a trained bundle to text, in Python."""

from pathlib import Path

import pytest
from tests.integration.workshop import Workshop, run

import transept
from transept.errors import CheckpointError

TEXTS = ["one two three", "", "seven", "ten nine eight seven six five", "four four"]


@pytest.fixture(scope="module")
def trained(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("trained") / "run"
    settings = ["training.max_steps=120", "model.d_model=32", "model.d_ff=64", "model.dropout=0.0",
                "training.log_every=20", "validation.every_steps=40",
                "schedule.warmup_steps=40"]  # fmt: skip
    assert run("train", workshop.config, *settings, "--output", output) == 0
    assert run("average", output, "--last", "3") == 0
    return output


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
        (alone,) = model.translate([text], beam_size=beam_size)
        assert alone.text == one.text == other.text
        assert [alone.score, other.score] == pytest.approx([one.score] * 2, abs=1e-4)


def test_n_best_is_sorted_and_distinct(trained: Path) -> None:
    (result,) = transept.load(trained).translate(["one two three"], n_best=4)
    scores = [output.score for output in result.outputs]
    assert len({output.text for output in result.outputs}) == 4
    assert scores == sorted(scores, reverse=True)


def test_an_altered_bundle_is_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is no model directory"):
        transept.load(tmp_path)
