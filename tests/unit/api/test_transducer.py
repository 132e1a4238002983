"""`Transducer`: translation, scoring and ensembles."""

import itertools
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict

import pytest
import torch
from tests.unit.api.conftest import WORDS, network

from transept import ModelConfig, SamplingConfig, Transducer, Transformer
from transept.api.config import Options, TranslationConfig
from transept.api.networks import Networks
from transept.api.texts import Output, Unit, distinct
from transept.decoding.config import SearchConfig
from transept.decoding.engine import TOKENS_AT_ONCE, Input
from transept.engines.native.engine import NativeEngine
from transept.errors import ConfigError, DataError, TooLongError
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID, Tokenizer


class Short(TypedDict):
    max_length_extra: int
    raw: bool


# The outputs of a random network are not usable: `Guard` would translate them again.
SHORT: Short = {"max_length_extra": 3, "raw": True}
TEXTS = ["One two. Three!  Four five?", "", "  six\nseven \t", "eight"]


def test_options_match_fields_of_translation_config() -> None:
    fields = typing.get_type_hints(TranslationConfig)
    keywords = typing.get_type_hints(Options, localns={"SamplingConfig": SamplingConfig})
    more = {"format", "alignments", "sampling", "prefix", "glossary", "keep", "watch"}
    assert {name: keywords[name] for name in keywords.keys() - more} == fields
    assert more <= keywords.keys()


def test_translate_returns_one_result_for_str_and_list_for_list(transducer: Transducer) -> None:
    together = transducer.translate(TEXTS, **SHORT)
    assert [one.source for one in together] == TEXTS
    assert [transducer.translate(text, **SHORT).text for text in TEXTS] == [
        one.text for one in together
    ]
    assert transducer.translate([]) == []


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_by_the_native_engine_do_not_depend_on_other_texts(
    tokenizer: Tokenizer, beam_size: int
) -> None:
    # In double precision, so that rounding, which depends on the batch shape, breaks no ties.
    double = Transducer([network(1).double()], tokenizer, tokenizer, max_source_length=40)
    words = WORDS.split()[:10]
    texts = [" ".join(words[: 1 + n % 10]) + f" {words[n % 7]}" for n in range(30)]

    def outputs(some: list[str]) -> dict[str, list[str]]:
        found = double.translate(some, beam_size=beam_size, n_best=beam_size, **SHORT)
        return {one.source: [output.text for output in one.outputs] for one in found}

    alone = {text: each for one in texts for text, each in outputs([one]).items()}
    assert double.engine.name == "native"
    assert outputs(texts) == outputs(texts[::-1]) == alone
    assert outputs(texts[:5]) == {text: alone[text] for text in texts[:5]}


def test_translate_names_invalid_options(transducer: Transducer) -> None:
    with pytest.raises(ConfigError, match="beamsize: unknown key; did you mean 'beam_size'"):
        transducer.translate("one", beamsize=8)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="too_long: 'cut' is not one of 'refuse', 'split'"):
        transducer.translate("one", too_long="cut")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="n_best"):
        transducer.translate("one", n_best=9)


def test_sentences_are_translated_separately_and_keep_white_space(
    transducer: Transducer,
) -> None:
    whole = transducer.translate("  One two. Three!\n\nfour ", **SHORT)
    assert [(one.source, one.space) for one in whole.sentences] == [
        ("", "  "),
        ("One two.", " "),
        ("Three!", "\n\n"),
        ("four", " "),
    ]
    alone = [transducer.translate(part, **SHORT) for part in ("One two.", "Three!", "four")]
    first, second, third = alone
    assert whole.text == f"  {first.text} {second.text}\n\n{third.text} "
    assert whole.score == pytest.approx(sum(one.score for one in alone), abs=1e-4)
    log_p = sum(one.outputs[0].log_probability for one in alone)
    assert whole.outputs[0].log_probability == pytest.approx(log_p, abs=1e-4)


def test_split_false_translates_text_as_one_sentence(transducer: Transducer) -> None:
    result = transducer.translate(" One two. Three!\n", split=False, **SHORT)
    assert [one.source for one in result.sentences] == ["", "One two. Three!"]
    assert result.text[0] == " "
    assert result.text[-1] == "\n"


def test_empty_text_stays_empty(transducer: Transducer) -> None:
    for text in ("", " ", "\n"):
        result = transducer.translate(text, n_best=2, alignments=True)
        assert (result.text, result.score, result.alignment) == (text, 0.0, ())
        drawn = transducer.translate(text, n_best=2, sampling=SamplingConfig())
        assert [one.text for one in drawn.outputs] == [text, text]


def test_n_best_of_several_sentences_are_best_combinations(transducer: Transducer) -> None:
    result = transducer.translate("One. Two. Three.", n_best=4, **SHORT)
    combinations = itertools.product(*(one.outputs for one in result.sentences))
    sums = sorted((sum(one.score for one in each) for each in combinations), reverse=True)
    assert [one.score for one in result.outputs] == pytest.approx(sums[:4])
    assert result.outputs[0].text == result.text
    only = transducer.translate("One. Two. Three.", **SHORT)
    assert only.text == result.text


def test_too_long_sentence_raises_error_with_its_number(transducer: Transducer) -> None:
    long = "One two three four five six " * 12
    n_tokens = len(transducer.source_tokenizer.encode(long.strip())) + 1
    with pytest.raises(TooLongError) as refused:
        transducer.translate(["one", f"Two. {long}"], too_long="refuse")
    assert (refused.value.number, refused.value.enough) == (2, n_tokens)
    for words in ("text 2", "'One two three four", "trained on has 40", "too_long='split'"):
        assert words in str(refused.value)
    with pytest.raises(DataError, match="the given limit is 10"):
        transducer.translate(long, max_source_length=10, too_long="refuse")
    whole = transducer.translate(long, max_source_length=n_tokens, max_length_factor=0.1, **SHORT)
    assert len(whole.sentences) == 1


def test_too_long_sentence_is_split_and_its_length_returned(transducer: Transducer) -> None:
    long = "one two three four five six, seven eight nine ten; " * 6
    result = transducer.translate(long, **SHORT)
    assert result.too_long == (len(transducer.source_tokenizer.encode(long.strip())) + 1,)
    assert transducer.translate("one two. Three.", **SHORT).too_long == ()
    twice = transducer.translate(f"{long.strip()}. One. {long}", **SHORT)
    assert len(twice.too_long) == 2
    sources = [one.source for one in result.sentences]
    assert len(sources) > 3
    lengths = [len(transducer.source_tokenizer.encode(source)) + 1 for source in sources]
    assert max(lengths) <= 40
    assert "".join(one.source + one.space for one in result.sentences) == long
    assert all(source[-1] in ";," for source in sources)


def test_learned_positions_are_a_hard_limit(tokenizer: Tokenizer) -> None:
    model = network(1, positions="learned", max_positions=12)
    transducer = Transducer([model], tokenizer, tokenizer)
    assert transducer.max_source_length == 12
    with pytest.raises(ConfigError, match="13 is more than the 12 positions"):
        transducer.translate("one", max_source_length=13)
    with pytest.raises(TooLongError, match=r"has 12; too_long='split' splits it$"):
        transducer.translate("one two three four five six seven", too_long="refuse")
    (output,) = transducer.translate("one two three", alignments=True).outputs
    assert not output.finished  # with sinusoidal positions it would continue
    with pytest.raises(TooLongError, match="text 2: a side has"):
        transducer.score(["one", "two"], ["one", "one two three four five six seven"])


def test_translate_rejects_sampling_that_is_not_a_config(transducer: Transducer) -> None:
    with pytest.raises(ConfigError, match=r"sampling: .* use transept.SamplingConfig\(seed=1\)"):
        transducer.translate("one", sampling={"seed": 1})  # type: ignore[call-overload]


def test_samples_depend_on_the_seed(transducer: Transducer) -> None:
    def draw(seed: int, **changes: object) -> list[list[str]]:
        sampling = SamplingConfig(seed=seed, **changes)  # type: ignore[arg-type]
        drawn = transducer.translate(TEXTS, sampling=sampling, n_best=6, **SHORT)
        return [[output.text for output in one.outputs] for one in drawn]

    first = draw(1)
    assert first == draw(1)
    assert first != draw(2)
    assert [len(each) for each in first] == [6] * 4
    assert len(set(first[0])) > 1
    greedy = transducer.translate(TEXTS, beam_size=1, **SHORT)
    assert [set(each) for each in draw(1, top_k=1)] == [{one.text} for one in greedy]


def test_sampling_rejects_beam_options(transducer: Transducer) -> None:
    drawing = SamplingConfig()
    assert len(transducer.translate("one", sampling=drawing, n_best=6, **SHORT).outputs) == 6
    with pytest.raises(ConfigError, match="beam_size: is for beam search") as refused:
        transducer.translate("one", sampling=drawing, beam_size=9, length_penalty=1.0)
    assert [problem.key for problem in refused.value.problems] == ["beam_size", "length_penalty"]


def test_samples_do_not_depend_on_other_texts(
    transducer: Transducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = SamplingConfig(seed=3)
    together = transducer.translate(TEXTS, sampling=drawing, n_best=3, **SHORT)
    for text, both in zip(TEXTS, together, strict=True):
        alone = transducer.translate(text, sampling=drawing, n_best=2, **SHORT)
        assert [one.text for one in alone.outputs] == [one.text for one in both.outputs[:2]]
    twice = transducer.translate([TEXTS[0]] * 2, sampling=drawing, **SHORT)
    assert twice[0].text == twice[1].text
    monkeypatch.setitem(TOKENS_AT_ONCE, "cpu", 1)  # one sentence per batch
    again = transducer.translate(TEXTS[::-1], sampling=drawing, n_best=3, **SHORT)
    assert [[one.text for one in each.outputs] for each in again[::-1]] == [
        [one.text for one in each.outputs] for each in together
    ]


def test_samples_of_a_text_join_samples_of_its_sentences(transducer: Transducer) -> None:
    drawn = transducer.translate("One. Two.", sampling=SamplingConfig(), n_best=3, **SHORT)
    first, second = drawn.sentences
    assert [one.text for one in drawn.outputs] == [
        f"{a.text} {b.text}" for a, b in zip(first.outputs, second.outputs, strict=True)
    ]


def test_outputs_begin_with_their_prefix(transducer: Transducer) -> None:
    results = transducer.translate(["one. two", "", "three"], prefix="the end ", n_best=2, **SHORT)
    assert [len(one.sentences) for one in results] == [1, 0, 1]
    for result in (results[0], results[2]):
        assert all(output.text.startswith("the end") for output in result.outputs)
    each = transducer.translate(["one", "two"], prefix=["ten", ""], **SHORT)
    assert each[0].text.startswith("ten")
    assert each[1].text == transducer.translate("two", **SHORT).text
    # An empty prefix has no effect: the text is split.
    (usual,) = transducer.translate(["one. Two"], prefix=" ", **SHORT)
    assert len(usual.sentences) == 2
    for wrong, complaint in ((3, "prefix: expected .* got int 3"), (["a", None], "prefix 2: ")):
        with pytest.raises(DataError, match=complaint):
            transducer.translate(["a", "b"], prefix=wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="1 prefixes and 2 texts"):
        transducer.translate(["one", "two"], prefix=["ten"])


def test_watch_is_called_with_progress(transducer: Transducer) -> None:
    seen: list[tuple[int, int]] = []
    texts = ["one two three four"] * 200
    transducer.translate(texts, watch=lambda *counts: seen.append(counts), **SHORT)
    assert len(seen) > 1
    assert seen[-1] == (200, 200)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_translation_does_not_depend_on_number_of_threads(
    transducer: Transducer, n_threads: int
) -> None:
    texts = [*TEXTS, "one two three", "ten nine eight seven six"] * 3
    expected = [transducer.translate(text, **SHORT) for text in texts]
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    found = transducer.translate(texts, **SHORT)
    torch.set_num_threads(before)
    assert [one.text for one in found] == [one.text for one in expected]


def test_watch_can_stop_translation_by_raising(transducer: Transducer) -> None:
    calls: list[int] = []

    def watch(n_done: int, n_all: int | None) -> None:
        calls.append(n_done)
        if len(calls) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        transducer.translate("one two three four", watch=watch, max_length_extra=9)
    assert calls == [0, 0, 0]


def test_ensemble_averages_two_networks(tokenizer: Tokenizer, transducer: Transducer) -> None:
    same = Transducer([network(1), network(1)], tokenizer, tokenizer, max_source_length=40)
    both = Transducer([network(1), network(2)], tokenizer, tokenizer, max_source_length=40)
    alone = transducer.translate(TEXTS, **SHORT)
    assert [one.text for one in same.translate(TEXTS, **SHORT)] == [one.text for one in alone]
    assert [one.text for one in both.translate(TEXTS, **SHORT)] != [one.text for one in alone]


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_forced_decoding_agrees_with_search(seeds: tuple[int, ...]) -> None:
    models = [network(seed) for seed in seeds]
    networks, engine = Networks(models), NativeEngine(models)
    sources = [[270, 271, EOS_ID], [280, EOS_ID], [261, 262, 263, 264, EOS_ID]]
    config = SearchConfig(beam_size=3, n_best=3)
    inputs = [Input(source, longest) for source, longest in zip(sources, [6, 5, 6], strict=True)]
    found = engine.search(inputs, config, no_progress)
    for source, hypotheses in zip(sources, found, strict=True):
        targets = [[*one.ids, EOS_ID] if one.finished else [*one.ids] for one in hypotheses]
        log_p = networks.token_log_probabilities([source] * len(targets), targets)
        expected = [one.log_probability for one in hypotheses]
        assert [sum(values) for values in log_p] == pytest.approx(expected, abs=1e-4)


def test_score_returns_log_probability_of_each_token(transducer: Transducer) -> None:
    first, second, empty, half = transducer.score(
        ["one two", "three", "", "four"], ["the end", " so ", "", ""]
    )
    assert first.tokens[-1] == second.tokens[-1] == "</s>"
    assert first.log_probability == pytest.approx(sum(first.token_log_probabilities))
    assert len(first.tokens) == len(first.token_log_probabilities)
    assert transducer.score("three", "so").log_probability == pytest.approx(
        second.log_probability, abs=1e-5
    )
    assert (empty.log_probability, empty.tokens) == (0.0, ())
    assert half.tokens == ("</s>",)
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        transducer.score(["one", "two"], ["three"])


def test_alignments_link_each_output_word_within_its_sentence(
    transducer: Transducer,
) -> None:
    result = transducer.translate("One two. Three four five!", alignments=True, n_best=2, **SHORT)
    for output in result.outputs:
        assert output.alignment is not None
        assert sorted(j for _, j in output.alignment) == list(range(len(output.text.split())))
        assert {i for i, _ in output.alignment} <= set(range(5))
        assert output.pharaoh.split()[0] == "{}-{}".format(*output.alignment[0])
    n_first = len(result.sentences[0].outputs[0].text.split())
    assert result.alignment is not None
    assert all((i < 2) == (j < n_first) for i, j in result.alignment)
    assert transducer.translate("One", **SHORT).alignment is None


def test_arguments_that_are_not_text_are_rejected(transducer: Transducer) -> None:
    with pytest.raises(DataError, match="expected a text or a list of texts, got int 5"):
        transducer.translate(5)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="a list of texts, got None"):
        transducer.translate(None)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="got bytes; decode them first"):
        transducer.translate(b"x")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="or a list of texts, got dict"):
        transducer.translate({"first": "one"})  # type: ignore[call-overload]
    with pytest.raises(DataError, match="or a list of texts, got set"):
        transducer.translate({"one", "two"})  # type: ignore[call-overload]
    with pytest.raises(DataError, match="text 2: expected a str, got float"):
        transducer.translate(["one", 0.5])  # type: ignore[list-item]
    with pytest.raises(DataError, match="text 1: expected a str, got None"):
        next(transducer.stream(None))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="text 1: expected a str, got list"):
        transducer.attend(["one"])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected a text or a list of texts, got str"):
        transducer.score(["one"], "two")


def test_repr_shows_sizes_device_and_engine(transducer: Transducer) -> None:
    both = Transducer(
        [transducer.model, transducer.model],
        transducer.source_tokenizer,
        transducer.target_tokenizer,
    )
    n, size = transducer.model.n_parameters(), transducer.source_tokenizer.vocab_size
    assert repr(both) == (
        f"<Transducer: {size} to {size} tokens, {n:,} + {n:,} parameters on cpu, engine native>"
    )


# --- threads ---------------------------------------------------------------------------------


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_small_network_decodes_single_sentence_with_one_thread(transducer: Transducer) -> None:
    inside: set[int] = set()
    transducer.translate("one", watch=lambda done, of: inside.add(torch.get_num_threads()), **SHORT)
    assert inside == {1}
    outside = {torch.get_num_threads() for _ in transducer.stream("one", **SHORT)}
    assert outside == {2}


@pytest.mark.usefixtures("two_threads")
def test_wide_network_uses_all_threads() -> None:
    with torch.device("meta"):
        base = Transformer(ModelConfig.preset("base", vocab_size=100))
    assert NativeEngine([base]).threads == 2
    assert NativeEngine([network(1)]).threads == 1


# --- feeds -----------------------------------------------------------------------------------


def feed_in_groups(units: Sequence[Unit], plan: list[int]) -> Callable[[int], list[Unit]]:
    """A feed that returns groups of these sizes."""
    waiting, numbers = iter(units), itertools.cycle(plan)
    return lambda n: [*itertools.islice(waiting, min(n, next(numbers)))]


@pytest.mark.parametrize("plan", [[100], [1], [2, 1, 3]])
def test_translate_feed_agrees_with_translate_units(
    transducer: Transducer, plan: list[int]
) -> None:
    texts = ["one two three", "four five", "six. Seven!", "eight", "one"] * 2
    units = [unit for each in transducer.units(texts) for unit in each]
    units.insert(3, Unit("", " ", []))
    expected = transducer.translate_units(units, n_best=2, alignments=True, **SHORT)
    feed = feed_in_groups(units, plan)
    results = [
        *itertools.chain(*transducer.translate_feed(feed, n_best=2, alignments=True, **SHORT))
    ]
    found = dict(results)
    assert len(found) == len(results) == len(units)
    for number, outputs in enumerate(expected):
        assert [o.text for o in found[number]] == [o.text for o in outputs]
        assert [o.alignment for o in found[number]] == [o.alignment for o in outputs]
        for one, other in zip(found[number], outputs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_units_and_translate_units_give_the_translation(transducer: Transducer) -> None:
    text = "one two.  Three four!"
    (units,) = transducer.units([text])
    outputs = [outputs[0].text for outputs in transducer.translate_units(units, **SHORT)]
    joined = "".join(one + unit.space for one, unit in zip(outputs, units, strict=True))
    assert joined == transducer.translate(text, **SHORT).text


def test_units_and_feed_reject_unsupported_options(transducer: Transducer) -> None:
    (units,) = transducer.units(["one"])
    with pytest.raises(ConfigError, match="prefix: is not supported for a feed; use `translate`"):
        next(transducer.translate_feed(feed_in_groups(units, [1]), prefix="two"))
    with pytest.raises(ConfigError, match="prefix: is not supported for units; use `translate`"):
        transducer.translate_units(units, prefix="two")
    with pytest.raises(TooLongError, match="text 1: the sentence"):
        transducer.units(["one two three four five six " * 9], too_long="refuse")


@pytest.mark.parametrize("text", ["...", "---", "* * *", "_____", " \U0001f389 ", "\u2022\n\u2022"])
def test_text_without_letters_is_kept(transducer: Transducer, text: str) -> None:
    (result,) = transducer.translate([text], n_best=2, alignments=True)
    assert [output.text for output in result.outputs] == [text]
    assert result.score == 0
    assert list(transducer.stream(text))[-1].text == text


def test_outputs_have_no_incomplete_characters(transducer: Transducer) -> None:
    texts = ["one two three", "four", "\N{EURO SIGN} five six"]
    for result in transducer.translate(texts, n_best=4, max_length_extra=40):
        assert all("\N{REPLACEMENT CHARACTER}" not in one.text for one in result.outputs)


def test_no_text_occurs_twice_among_the_best(transducer: Transducer) -> None:
    for result in transducer.translate(
        ["one two", "three four five"], n_best=4, max_length_extra=3
    ):
        texts = [output.text for output in result.outputs]
        assert len(set(texts)) == len(texts)
        assert [one.score for one in result.outputs] == sorted(
            (one.score for one in result.outputs), reverse=True
        )


def test_outputs_with_the_same_text_are_one() -> None:
    outputs = [Output("a", -1.0, -1.0), Output("b", -2.0, -2.0), Output("a", -3.0, -3.0)]
    assert distinct(outputs) == (outputs[0], outputs[1])
