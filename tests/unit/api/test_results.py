"""Translations of texts, joined from those of their sentences."""

from transept.api.texts import Output, Sentence, Translation


def sentence(
    source: str, text: str, space: str, alignment: tuple[tuple[int, int], ...]
) -> Sentence:
    return Sentence(source, space, (Output(text, -1.0, -2.0, alignment=alignment),))


def test_alignments_are_numbered_through_the_text() -> None:
    parts = [
        sentence("a b.", "A B C.", " ", ((0, 0), (0, 1), (1, 2))),
        sentence("c d", "D E", "", ((0, 1), (1, 0))),
    ]
    (output,) = Translation.best("a b. c d", parts, 1).outputs
    assert output == Output(
        "A B C. D E", -2.0, -4.0, alignment=((0, 0), (0, 1), (1, 2), (2, 4), (3, 3))
    )


def test_chinese_sentences_get_a_space_where_the_output_needs_one() -> None:
    to_english = [sentence("好。", "Good.", "", ((0, 0),)), sentence("走。", "Go.", "", ((0, 0),))]
    (output,) = Translation.best("好。走。", to_english, 1).outputs
    assert (output.text, output.alignment) == ("Good. Go.", ((0, 0), (0, 1)))
    to_japanese = [sentence("好。", "良い。", "", ()), sentence("走。", "行く。", "", ())]
    assert Translation.best("好。走。", to_japanese, 1).text == "良い。行く。"


def test_text_with_unfinished_sentence_is_unfinished() -> None:
    parts = [
        Sentence("a", " ", (Output("A", -1.0, -1.0, finished=False),)),
        Sentence("b", "", (Output("B", -1.0, -1.0),)),
    ]
    assert not Translation.best("a b", parts, 1).outputs[0].finished
