"""`Transducer.stream`."""

import pytest
import torch
from tests.unit.api.test_transducer import SHORT, TEXTS

import transept
from transept import SamplingConfig, Transducer
from transept.engines.native.engine import NativeEngine
from transept.engines.shortlist import Shortlist
from transept.errors import ConfigError
from transept.text.tokenizer import EOS_ID


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_last_draft_is_the_translation(transducer: Transducer, text: str, beam_size: int) -> None:
    drafts = list(transducer.stream(text, beam_size=beam_size, **SHORT))
    whole = transducer.translate(text, beam_size=beam_size, **SHORT).text
    assert drafts[-1].text == whole
    assert drafts[-1].stable == len(whole)
    for draft in drafts:
        assert whole.startswith(draft.text[: draft.stable]), "the stable part has changed"
    if beam_size == 1 and text == "eight":
        assert len(drafts) > 2
        assert all(draft.stable >= len(draft.text) - 1 for draft in drafts)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_stream_uses_the_shortlist(transducer: Transducer, beam_size: int) -> None:
    tokenizer, few = transducer.source_tokenizer, torch.tensor([EOS_ID, 50, 60, 70])
    listed = Shortlist(few.expand(tokenizer.vocab_size, -1), few)
    engine = NativeEngine(transducer.networks.models, listed)
    short = Transducer([transducer.model], tokenizer, tokenizer, engine=engine)
    *_, last = short.stream("one two", beam_size=beam_size, **SHORT)
    assert last.text == short.translate("one two", beam_size=beam_size, **SHORT).text
    assert last.text != transducer.translate("one two", beam_size=beam_size, **SHORT).text


@pytest.mark.parametrize("beam_size", [1, 4])
def test_incomplete_character_is_not_shown(transducer: Transducer, beam_size: int) -> None:
    drafts = list(transducer.stream("one", prefix="€", beam_size=beam_size, **SHORT))
    assert drafts[-1].text.startswith("€")
    half = [draft for draft in drafts if not draft.text]
    assert half, "the character has only one token"
    assert all("\N{REPLACEMENT CHARACTER}" not in draft.text for draft in drafts)


def test_stream_rejects_sampling(transducer: Transducer) -> None:
    with pytest.raises(ConfigError, match="sampling"):
        next(transducer.stream("one", sampling=SamplingConfig()))


def test_start_of_a_long_sentence_is_not_stable_while_it_may_be_replaced() -> None:
    model = transept.load("en-de")
    text = "We went to the old market in the centre of the town because it was raining."
    (*drafts, last) = model.stream(text, beam_size=1)
    assert drafts[0].text
    assert drafts[0].stable == 0
    assert len(drafts) >= len(last.text.split()), "it comes token by token"
    assert max(draft.stable for draft in drafts) > 0
    assert last.text == model.translate(text, beam_size=1).text
