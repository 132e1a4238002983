"""The words of a translation, and other choices."""

import math
from collections.abc import Iterator

import pytest
from tests.random_networks import any_output_accepted

import transept
from transept import Transducer
from transept.api.search_tree import search_tree
from transept.api.words import WordedSentence, next_words, unit_words
from transept.decoding.config import BeamConfig, SearchConfig
from transept.errors import DataError

TEXTS = [
    "I would like a cup of tea.",
    "- Mail info@example.org at 3:30 pm, or call 🙂",
    "IT RAINS.",
    "“Where do you live?” he asked.",
    "Open the file a/b/c.txt, and wait: 12,5 %",
]


@pytest.fixture(scope="module")
def german() -> Transducer:
    return transept.load("en-de")


def words_of(model: Transducer, text: str, prefix: str = "", **options: int) -> WordedSentence:
    (units,) = model.units([text], split=False)
    (found,) = unit_words(model, units, [prefix], BeamConfig(**options))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_at_their_positions_in_the_translation(german: Transducer, text: str) -> None:
    found = words_of(german, text)
    assert found.source == text
    assert found.text == german.translate(text, split=False).text
    assert len(found.words) == len(found.text.split())
    assert [found.text[word.start : word.end] for word in found.words] == [
        word.text for word in found.words
    ]
    for word in found.words:
        assert 0 < word.probability <= 1
        for start, end in word.sources:
            assert text[start:end].strip()


def test_probability_is_the_geometric_mean_of_the_subwords(german: Transducer) -> None:
    text = "I would like a cup of tea."
    found = words_of(german, text)
    score = german.score(text, found.text, segmentation="canonical")
    starts = [at for at, token in enumerate(score.tokens) if token.startswith("▁")]
    for word, start, end in zip(found.words, starts, [*starts[1:], None], strict=True):
        pairs = zip(score.tokens[start:end], score.token_log_probabilities[start:end], strict=True)
        values = [value for token, value in pairs if token not in (".", "</s>")]
        assert word.probability == pytest.approx(math.exp(sum(values) / len(values)), rel=1e-3)


def test_sources_are_the_aligned_words(german: Transducer) -> None:
    found = words_of(german, "I would like a cup of tea.")
    sources = {
        word.text: [found.source[start:end] for start, end in word.sources] for word in found.words
    }
    assert (sources["Tasse"], sources["Tee"], sources["Ich"]) == (["cup"], ["tea"], ["I"])


def test_text_without_words_is_kept(german: Transducer) -> None:
    found = words_of(german, "🙂 12")
    assert found.text == "🙂 12"
    assert [(word.text, word.probability, word.sources) for word in found.words] == [
        ("🙂", 1.0, ((0, 1),)),
        ("12", 1.0, ((2, 4),)),
    ]


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("I would like a cup of tea.", "Ich möchte"),
        ("I would like a cup of tea.", " Ich möchte "),
        ("The house is big.", "Das Hau"),
        ("THE HOUSE IS BIG.", "EIN HAUS"),
        ("- Mail info@example.org, or call the cat.", "- Schicken info@example.org,"),
    ],
)
def test_translation_begins_with_the_prefix_and_another_word(
    german: Transducer, text: str, prefix: str
) -> None:
    found = words_of(german, text, prefix)
    assert found.text.startswith(prefix.strip())
    rest = found.text[len(prefix.strip()) :]
    assert rest
    assert not rest[0].isalnum()


def test_unusable_output_is_translated_again(transducer: Transducer) -> None:
    """Random networks never end an output."""
    found = words_of(transducer, "one two three")
    assert found.text == transducer.translate("one two three").text
    assert [found.text[word.start : word.end] for word in found.words] == [
        word.text for word in found.words
    ]


def test_choices_are_whole_words_with_their_probability(german: Transducer) -> None:
    text, prefix = "I would like a cup of tea.", "Ich"
    found = next_words(german, text, prefix, 5)
    assert [one.text for one in found[:3]] == ["hätte", "würde", "möchte"]
    assert [one.probability for one in found] == sorted(
        (one.probability for one in found), reverse=True
    )
    assert sum(one.probability for one in found) <= 1
    for one in found[:3]:
        scores = [
            german.score(text, given, segmentation="canonical").token_log_probabilities[:-1]
            for given in (prefix, f"{prefix} {one.text}")
        ]
        expected = math.exp(sum(scores[1]) - sum(scores[0]))
        assert one.probability == pytest.approx(expected, rel=1e-3)
    assert words_of(german, text, f"{prefix} {found[1].text}").text.startswith("Ich würde ")


def test_choices_include_compounds_and_punctuation(german: Transducer) -> None:
    mail = next_words(german, "Send me an e-mail.", "Senden Sie mir eine", 3)
    assert mail[0].text == "E-Mail"
    end = next_words(german, "I saw the dog.", "Ich sah den Hund", 2)
    assert end[0].text == "."
    first = next_words(german, "I saw the dog.", "", 2)
    assert first[0].text == "Ich"


@pytest.mark.parametrize(
    ("text", "prefix", "error"),
    [
        ("", "", "the source has no words"),
        ("🙂", "", "the source has no words"),
        ("one " * 400, "", "tokens"),
        ("one", "eins " * 300, "the prefix has"),
    ],
)
def test_invalid_sentence_or_prefix_is_rejected(
    german: Transducer, text: str, prefix: str, error: str
) -> None:
    with pytest.raises(DataError, match=error):
        next_words(german, text, prefix, 3)


# --- the tree of a search --------------------------------------------------------------------


@pytest.fixture(scope="module")
def random_network() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.mark.parametrize("beam_size", [2, 4, 7])
def test_winner_of_the_tree_is_the_output_of_the_search(german: Transducer, beam_size: int) -> None:
    config = SearchConfig(beam_size=beam_size)
    for text in (TEXTS[0], "The house is big, and the cat sleeps."):
        tree = search_tree(german, text, config)
        output = german.translate(text, beam_size=beam_size, raw=True).outputs[0]
        (winner,) = [one for step in tree.steps for one in step if one.id == tree.winner]
        assert (winner.text, winner.token, winner.state) == (output.text, "</s>", "finished")
        assert winner.score == pytest.approx(output.log_probability, abs=1e-4)
        assert winner.normalized == pytest.approx(output.score, abs=1e-4)
        assert f"{winner.normalized:.2f}" in tree.reason
        assert {one.state for step in tree.steps for one in step} == {
            "kept",
            "pruned",
            "finished",
        }


@pytest.mark.usefixtures("random_network")
def test_tree_of_a_search_that_does_not_end(transducer: Transducer) -> None:
    tree = search_tree(transducer, "one two", SearchConfig(max_length_extra=5))
    assert "No hypothesis ended within" in tree.reason
    assert tree.winner in {one.id for one in tree.steps[-1]}


@pytest.mark.parametrize(
    ("text", "beam_size", "error"),
    [
        ("one", 1, "at least 2"),
        ("", 4, "the source has no words"),
        ("one " * 400, 4, "tokens"),
        ("one " * 100, 30, "more than 5,000"),
    ],
)
def test_tree_rejects_invalid_requests(
    german: Transducer, text: str, beam_size: int, error: str
) -> None:
    with pytest.raises(DataError, match=error):
        search_tree(german, text, SearchConfig(beam_size=beam_size))
