"""Scores of translations, and the choice of sentences."""

from transept.training.quality import Quality, evenly_spaced


def test_evenly_spaced_indices_are_distinct_and_cover_the_range() -> None:
    assert [*evenly_spaced(4, 10)] == [0, 2, 5, 7]
    assert [*evenly_spaced(10, 4)] == [0, 1, 2, 3]
    assert [*evenly_spaced(0, 4)] == []
    assert [*evenly_spaced(3, 0)] == []


def test_perfect_translations_score_100_and_case_counts() -> None:
    texts = ["The cat sleeps on the mat .", "It rains again today ."]
    perfect = Quality.of(texts, ["a", "b"], texts, 1.5, n_samples=1)
    assert (perfect.bleu, perfect.chrf, perfect.sentences) == (100.0, 100.0, 2)
    assert perfect.samples == [{"source": "a", "reference": texts[0], "output": texts[0]}]
    lower = Quality.of([text.lower() for text in texts], ["a", "b"], texts, 1.5, n_samples=0)
    assert lower.bleu < 100
    assert lower.samples == []
