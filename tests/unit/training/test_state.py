"""The best value of a metric so far."""

import math

from transept.training.state import Progress


def test_nll_improves_by_falling_and_bleu_by_rising() -> None:
    loss, score = Progress(), Progress(metric="bleu")
    for step, (nll, bleu) in enumerate([(3.0, 10.0), (2.0, 12.0), (2.5, 11.0)], start=1):
        loss.step = score.step = step
        improved = step < 3
        assert loss.is_best("nll", nll) is score.is_best("bleu", bleu) is improved
    assert (loss.best_step, loss.best, loss.stale_validations) == (2, 2.0, 1)
    assert (score.best_step, score.best, score.stale_validations) == (2, 12.0, 1)


def test_other_metrics_do_not_count() -> None:
    progress = Progress(step=1, metric="chrf")
    assert not progress.is_best("nll", 1.0)
    assert not progress.is_best("bleu", 50.0)
    assert (progress.best, progress.stale_validations) == (None, 0)
    assert progress.is_best("chrf", 0.0)


def test_a_value_that_is_not_finite_does_not_improve() -> None:
    progress = Progress(step=1)
    assert not progress.is_best("nll", math.nan)
    assert not progress.is_best("nll", math.inf)
    assert (progress.best_step, progress.stale_validations) == (None, 2)


def test_state_of_the_first_versions_is_read() -> None:
    progress = Progress(step=8, best_step=4, best=1.5)
    table = progress.as_json()
    assert Progress.from_json(table) == progress
    del table["metric"]
    table["best_nll"] = table.pop("best")
    assert Progress.from_json(table) == progress
