"""The words of a translation: their probability, the source words behind them, and other choices.

The text of a translation may differ from the output of the model: protected spans are written in
full, and the final punctuation follows the source (`transept.text.protection`). So a word of the
text is found by its number.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from transept.api.networks import words_of_tokens
from transept.api.texts import INCOMPLETE, Alignment, Unit, as_texts
from transept.api.transducer import Transducer
from transept.decoding.config import BeamConfig, SearchConfig
from transept.decoding.engine import Ids, Input, Spelling
from transept.decoding.step import Hypothesis
from transept.errors import DataError
from transept.progress import Watch, no_progress
from transept.text.surface import in_double_quotes, in_single_quotes, sentence_case
from transept.text.tokenizer import EOS_ID, PAD_ID

Span = tuple[int, int]
"""The start and the end of a part of a text, in characters."""
MORE_CANDIDATES = 3
"""The number of first subwords to try in addition. Several may begin the same word."""
WORD_TOKENS = 6
"""The maximum number of further subwords of a choice."""
_WORD = re.compile(r"\S+")
_CORE = re.compile(r"\w.*\w|\w", re.DOTALL)


class Word(NamedTuple):
    """A word of a translation, without punctuation at its ends."""

    text: str
    start: int
    end: int
    probability: float
    """The geometric mean of the probabilities of its subwords."""
    sources: tuple[Span, ...]
    """The source words that the model attends to most."""


class WordedSentence(NamedTuple):
    """A sentence, its translation, and the words of the translation."""

    source: str
    text: str
    words: tuple[Word, ...]


class NextWord(NamedTuple):
    """A word that may come next, and its probability."""

    text: str
    probability: float


def unit_words(
    model: Transducer,
    units: Sequence[Unit],
    prefixes: Sequence[str],
    beam: BeamConfig,
    watch: Watch = no_progress,
) -> list[WordedSentence]:
    """Translate units of `Transducer.units`, and describe the words of each translation.

    Args:
        model: The model.
        units: The units, normally sentences.
        prefixes: Words with which the translation of each unit must begin. Another word follows
            them. Empty for most.
        beam: Beam size and length penalty.
        watch: Called while the search is running. It may raise an exception.
    """
    size = beam.beam_size
    config = SearchConfig(beam_size=size, length_penalty=beam.length_penalty, n_best=size)
    todo = [pair for pair in zip(units, prefixes, strict=True) if pair[0].ids]
    inputs = [
        input_of(model, unit, _encoded_prefix(model, unit, prefix), config) for unit, prefix in todo
    ]
    found = iter(model.engine.search(inputs, config, watch))
    return [
        _described(model, unit, next(found), prefix, watch) if unit.ids else _kept(unit)
        for unit, prefix in zip(units, prefixes, strict=True)
    ]


def next_words(
    model: Transducer, text: str, prefix: str, n: int, *, target_language: str | None = None
) -> list[NextWord]:
    """The likeliest words after the start of a translation, best first.

    Each subword that may begin a word is completed by greedy search.

    Args:
        model: The model.
        text: One sentence; it is not split.
        prefix: The start of its translation. It ends with a whole word.
        n: The maximum number of words.
        target_language: The target language, for a model that has several.
    """
    unit = only_unit(model, text, target_language)
    source, before = model.source_tokenizer.framed(unit.ids), _encoded_prefix(model, unit, prefix)
    tokenizer = model.target_tokenizer
    (log_p,) = model.networks.next_log_probabilities(source, [before])
    first = [*tokenizer.after_word.difference({PAD_ID, EOS_ID, tokenizer.unk_id})]
    best = log_p[first].topk(min(n + MORE_CANDIDATES, len(first)))
    begun = [
        _Begun([first[index]], [value])
        for value, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]
    choices: dict[str, float] = defaultdict(float)
    for one in _completed(model, source, before, begun):
        shown = _shown_word(model, unit, before, one.ids)
        if shown:
            choices[shown] += math.exp(sum(one.log_p))
    ranked = sorted(choices.items(), key=lambda choice: -choice[1])
    return [NextWord(*choice) for choice in ranked[:n]]


class _Begun(NamedTuple):
    """The first subwords of a word."""

    ids: list[int]
    log_p: list[float]


def _completed(
    model: Transducer, source: Ids, before: Ids, begun: Sequence[_Begun]
) -> Iterator[_Begun]:
    """Extend each word greedily to its end, without punctuation after it."""
    surfaces = model.target_tokenizer.surfaces
    for _ in range(WORD_TOKENS):
        if not begun:
            return
        log_p = model.networks.next_log_probabilities(
            source, [[*before, *one.ids] for one in begun]
        )
        more = zip(*(part.tolist() for part in log_p.max(dim=1)), strict=True)
        longer = []
        for (ids, values), (added, token) in zip(begun, more, strict=True):
            # A space may be a separate subword. Then the word is still to come.
            is_blank = not b"".join(surfaces(ids)).strip()
            if token == EOS_ID or (surfaces([token])[0].startswith(b" ") and not is_blank):
                yield _without_punctuation(_Begun(ids, values), surfaces(ids))
            else:
                longer.append(_Begun([*ids, token], [*values, added]))
        begun = longer
    yield from begun


def _without_punctuation(word: _Begun, surfaces: Sequence[bytes]) -> _Begun:
    """A word without punctuation at its end, unless it has nothing else."""
    ends = [
        number
        for number, surface in enumerate(surfaces, start=1)
        if any(map(str.isalnum, surface.decode("utf-8", "replace")))
    ]
    end = ends[-1] if ends else len(surfaces)
    return _Begun(word.ids[:end], word.log_p[:end])


def only_unit(model: Transducer, text: str, target_language: str | None) -> Unit:
    """A text as one unit. An error if it has no words, or if it is too long."""
    (units,) = model.units(
        as_texts([text]), split=False, target_language=target_language, too_long="refuse"
    )
    if not units or not units[0].ids:
        raise DataError("the source has no words; give a sentence")
    return units[0]


def input_of(model: Transducer, unit: Unit, prefix: Ids, config: SearchConfig) -> Input:
    """The input of a search. Another word, or the end, follows the prefix."""
    source = model.source_tokenizer.framed(unit.ids)
    longest = max(config.max_length(len(source)), len(prefix) + 1)
    after = model.target_tokenizer.after_word | {EOS_ID}
    spelling = Spelling(after=after if prefix else None)
    return Input(source, model.limits.clamp(longest), prefix, spelling=spelling)


def _encoded_prefix(model: Transducer, unit: Unit, prefix: str) -> list[int]:
    """The tokens of the start of a translation, as the model would write it."""
    masked, prefix = unit.masked, prefix.strip()
    if masked.before and prefix.startswith(masked.before.strip()):
        prefix = prefix[len(masked.before.strip()) :].lstrip()
    if str.upper in masked.forms:
        prefix = sentence_case(prefix)
    if in_single_quotes in masked.forms:
        prefix = in_double_quotes(prefix)
    for span in masked.spans:
        prefix = prefix.replace(span.target, span.mask, 1)
    # The space before a word is part of that word's token.
    ids, longest = model.target_tokenizer.encode(prefix), model.max_source_length
    if len(ids) >= longest:
        what = f"the prefix has {len(ids):,} tokens; the model writes at most {longest - 1:,}"
        raise DataError(what)
    return ids


def _described(
    model: Transducer, unit: Unit, found: Sequence[Hypothesis], prefix: str, watch: Watch
) -> WordedSentence:
    """The words of the best usable hypothesis, or of a second attempt."""
    texts = [(one, text_of_ids(model, one.ids, unit)) for one in found]
    usable = unit.complete(texts)
    if not usable and not prefix.strip():
        return _described_again(model, unit, watch)
    best, output = (usable or texts)[0]
    text = unit.masked.restored(output)
    if not text.startswith(prefix.strip()):
        text = filled(unit, output)
    vocabularies = model.source_tokenizer, model.target_tokenizer
    (links,) = model.networks.alignments([(unit.ids, best.ids)], vocabularies)
    by_word: dict[int, list[float]] = defaultdict(list)
    n_words = len(text.split()) - len(unit.masked.after.split())
    for number, values in _log_p_of_words(model, unit.ids, best.ids).items():
        for shown in _shown_numbers(unit, number, output):
            if shown < n_words:
                by_word[shown] += values
    links = unit.masked.realigned(links, output)
    return WordedSentence(unit.text, text, tuple(_words(unit.text, text, links, by_word)))


def _described_again(model: Transducer, unit: Unit, watch: Watch) -> WordedSentence:
    """The words of a second attempt, of which only the text is known."""
    ((best, *_),) = model.translate_units([unit], alignments=True, watch=watch)
    log_p = _log_p_of_words(model, unit.ids, model.target_tokenizer.encode(best.text))
    words = _words(unit.text, best.text, best.alignment or (), log_p)
    return WordedSentence(unit.text, best.text, tuple(words))


def _log_p_of_words(model: Transducer, source: Ids, target: Ids) -> dict[int, list[float]]:
    """The log-probabilities of the tokens of each word."""
    framed = model.source_tokenizer.framed(source)
    (log_p,) = model.networks.log_probabilities([(framed, [*target, EOS_ID])])
    numbers_of_tokens = words_of_tokens(model.target_tokenizer.surfaces(target))
    by_word: dict[int, list[float]] = defaultdict(list)
    for numbers, value in zip(numbers_of_tokens, log_p[:-1], strict=True):
        for number in numbers:
            by_word[number].append(value)
    return by_word


def _shown_numbers(unit: Unit, number: int, output: str) -> list[int]:
    """The words of the translation that a word of the model's output has become."""
    n_before = len(unit.masked.before.split())
    links = unit.masked.realigned(((0, number),), output)
    return sorted({j for _, j in links[n_before:]})


def _words(
    source: str, text: str, links: Alignment, log_p: Mapping[int, Sequence[float]]
) -> Iterator[Word]:
    sources = [_core(source, *found.span()) for found in _WORD.finditer(source)]
    for number, found in enumerate(_WORD.finditer(text)):
        start, end = _core(text, *found.span())
        behind = sorted(
            {sources[i] for i, j in links if j == number and i < len(sources)},
        )
        values = log_p.get(number, [0.0])
        yield Word(text[start:end], start, end, math.exp(sum(values) / len(values)), tuple(behind))


def _core(text: str, start: int, end: int) -> Span:
    """A word without punctuation at its ends, unless it has nothing else."""
    core = _CORE.search(text, start, end)
    return core.span() if core else (start, end)


def _kept(unit: Unit) -> WordedSentence:
    """A unit that is not translated."""
    links = unit.kept.alignment or ()
    return WordedSentence(unit.text, unit.text, tuple(_words(unit.text, unit.text, links, {})))


def _shown_word(model: Transducer, unit: Unit, before: Ids, ids: Ids) -> str:
    """A word after a prefix, as the translation has it."""
    start, now = (text_of_ids(model, some, unit) for some in (before, [*before, *ids]))
    word = now[len(start) :].strip() if now.startswith(start) else ""
    masked = unit.masked
    if not before:
        word = masked.begun(word)[len(masked.before) :]
    return filled(unit, word)[len(masked.before) :].strip()


def text_of_ids(model: Transducer, ids: Ids, unit: Unit) -> str:
    """The output of the model, without characters that are not complete."""
    text = model.target_tokenizer.decode(ids)
    return text if INCOMPLETE in unit.text else text.replace(INCOMPLETE, "")


def filled(unit: Unit, output: str) -> str:
    """An output of the model with the protected spans that it contains."""
    masked = unit.masked
    output = masked.formed(output)
    for span in masked.spans:
        output = output.replace(span.mask, span.target, 1)
    return masked.before + output
