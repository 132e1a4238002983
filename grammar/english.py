"""Expresses a meaning in English."""

from typing import Final

from grammar import parts
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PROGRESSIVE,
    STOPS,
    Clause,
    Joined,
    Nominal,
    Pair,
    Phrase,
    Prepositional,
    Quality,
    Relative,
    Sentence,
    agreement,
    asks,
)
from grammar.parts import Token
from grammar.words import THEY, THIRD, Adverbial, Name, Pronoun

_AM: Final = ("am", "are", "is", "are", "are")
_WAS: Final = ("was", "were", "was", "were", "were")
_DO: Final = ("do", "do", "does", "do", "do")
_HAVE: Final = ("have", "have", "has", "have", "have")


def say(sentence: Sentence) -> list[Token]:
    """Return the tokens of the sentence, in order."""
    out: list[Token] = []
    clause, joined = sentence.clause, sentence.joined
    if joined is not None and joined.leads:
        _joined(out, joined)
        out.append((",", (parts.COMMA,)))
    if sentence.please:
        out.append(("please", (parts.LINK,)))
    if sentence.mood == "command":
        _command(out, clause)
    else:
        _clause(out, clause, 0, inverted=sentence.mood == "question")
    if joined is not None and not joined.leads:
        if joined.conjunction is not None and joined.conjunction.comma:
            out.append((",", (parts.COMMA,)))
        _joined(out, joined)
    out.append((STOPS[sentence.mood], (parts.STOP,)))
    return out


def _joined(out: list[Token], joined: Joined) -> None:
    at = parts.inside(parts.JOINED)
    if joined.conjunction is not None:
        out.append((joined.conjunction.english, (at + parts.LINK,)))
    _clause(out, joined.clause, at)


# --- clauses -----------------------------------------------------------------------------------


def _clause(out: list[Token], clause: Clause, at: int, *, inverted: bool = False) -> None:
    """Subject, verb, objects, manner, place, time: in this order, except for a fronted part."""
    subject, front = clause.subject, clause.front
    if front != parts.SUBJECT:
        _part(out, clause, front, at)
    elif asks(subject):
        inverted = False  # `Who sees it?` has no auxiliary
    assert subject is not None
    agree = agreement(subject)
    if not inverted:
        _nominal(out, subject, at + parts.SUBJECT, is_subject=True)
        _predicate(out, clause, at, agree)
        return
    auxiliary, *verbs = _verbs(clause, at, agree, support=True)[0]
    out.append(auxiliary)
    _nominal(out, subject, at + parts.SUBJECT, is_subject=True)
    _inner(out, clause, at)
    out += verbs
    _rest(out, clause, at)


def _predicate(out: list[Token], clause: Clause, at: int, agree: int) -> None:
    """The verb and everything after it."""
    verbs, has_auxiliary = _verbs(clause, at, agree, support=clause.negated)
    if has_auxiliary:
        out.append(verbs.pop(0))
    _inner(out, clause, at)
    out += verbs
    _rest(out, clause, at)


def _inner(out: list[Token], clause: Clause, at: int) -> None:
    """The words within the verb: after its first auxiliary, before the verb itself."""
    if clause.negated:
        if out[-1][0] == "can":
            out[-1] = ("cannot", (at + parts.AUXILIARY, at + parts.NOT))
        else:
            out.append(("not", (at + parts.NOT,)))
    if clause.adverb is not None:
        _adverbial(out, clause.adverb, at + parts.ADVERB)


def _command(out: list[Token], clause: Clause) -> None:
    if clause.negated:
        out += (("do", (parts.VERB,)), ("not", (parts.NOT,)))
    _infinitive(out, clause, 0)


def _infinitive(out: list[Token], clause: Clause, at: int) -> None:
    verb = clause.verb.english
    out += [(word, (at + parts.VERB,)) for word in (verb.base, *verb.tail)]
    _rest(out, clause, at)


def _rest(out: list[Token], clause: Clause, at: int) -> None:
    """Everything after the verb, without the fronted part."""
    front = clause.front
    manner_first = clause.verb.preposition is not None  # `speaks quietly with him`
    if clause.manner is not None and manner_first:
        _adverbial(out, clause.manner, at + parts.MANNER)
    if clause.recipient is not None:
        _nominal(out, clause.recipient, at + parts.RECIPIENT)
    if clause.object is not None and front != parts.OBJECT:
        _part(out, clause, parts.OBJECT, at)
    if clause.quality is not None:
        _quality(out, clause.quality, at)
    if clause.manner is not None and not manner_first:
        _adverbial(out, clause.manner, at + parts.MANNER)
    if clause.place is not None and front != parts.PLACE:
        _part(out, clause, parts.PLACE, at)
    if clause.time is not None and front != parts.TIME:
        _adverbial(out, clause.time, at + parts.TIME)
    if clause.infinitive is not None:
        below = parts.inside(at + parts.VERB)
        out.append(("to", (below + parts.VERB,)))
        _infinitive(out, clause.infinitive, below)


def _part(out: list[Token], clause: Clause, part: int, at: int) -> None:
    """An object, a place or a time, in any position."""
    if part == parts.OBJECT:
        assert clause.object is not None
        if clause.verb.preposition is not None:
            _preposition(out, clause.verb.preposition.english, at + parts.OBJECT)
        _nominal(out, clause.object, at + parts.OBJECT)
        return
    phrase = clause.place if part == parts.PLACE else clause.time
    if isinstance(phrase, Prepositional):
        _preposition(out, phrase.preposition.english, at + part)
        _nominal(out, phrase.nominal, at + part)
    elif phrase is not None:
        _adverbial(out, phrase, at + part)


def _quality(out: list[Token], quality: Quality, at: int) -> None:
    here = at + parts.QUALITY
    if quality.degree is not None:
        _adverbial(out, quality.degree, here + parts.DEGREE)
    out.append((quality.adjective.name, (here + parts.ADJECTIVE,)))


# --- verbs -------------------------------------------------------------------------------------


def _verbs(clause: Clause, at: int, agree: int, *, support: bool) -> tuple[list[Token], bool]:
    """The verb with its auxiliaries, and whether the first word is an auxiliary.

    With `support`, a question or a `not` requires an auxiliary: `do` is added if there is none.
    """
    verb, says, helps = clause.verb.english, (at + parts.VERB,), (at + parts.AUXILIARY,)
    tense = clause.tense
    if clause.modal is not None:
        words, has_auxiliary = _modal(clause, helps, agree, support)
        words.append((verb.base, says))
    elif tense == PROGRESSIVE:
        words, has_auxiliary = [(_AM[agree], says), (verb.progressive, says)], True
    elif tense == PERFECT:
        words, has_auxiliary = [(_HAVE[agree], helps), (verb.participle, says)], True
    elif tense == FUTURE:
        words, has_auxiliary = [("will", helps), (verb.base, says)], True
    elif verb.base == "be":
        words, has_auxiliary = [((_WAS if tense == PAST else _AM)[agree], says)], True
    elif support:
        do = "did" if tense == PAST else _DO[agree]
        words, has_auxiliary = [(do, says), (verb.base, says)], True
    else:
        present = verb.third if agree == THIRD else verb.base
        words, has_auxiliary = [(verb.past if tense == PAST else present, says)], False
    words += [(word, says) for word in verb.tail]
    return words, has_auxiliary


def _modal(
    clause: Clause, helps: tuple[int, ...], agree: int, support: bool
) -> tuple[list[Token], bool]:
    modal, past = clause.modal, clause.tense == PAST
    assert modal is not None
    if modal.verb is None:
        words = modal.english_past if past else modal.english
        return [(word, helps) for word in words], words[0] != "had"
    if support:
        words = ("did" if past else _DO[agree], modal.verb.base, "to")
        return [(word, helps) for word in words], True
    present = modal.verb.third if agree == THIRD else modal.verb.base
    return [(modal.verb.past if past else present, helps), ("to", helps)], False


# --- phrases -----------------------------------------------------------------------------------


def _adverbial(out: list[Token], adverbial: Adverbial, at: int) -> None:
    for offset, piece in enumerate(adverbial.english):
        out += [(word, (at + offset,)) for word in piece]


def _preposition(out: list[Token], words: tuple[str, ...], at: int) -> None:
    out += [(word, (at + parts.PREPOSITION,)) for word in words]


def _nominal(out: list[Token], nominal: Nominal, at: int, *, is_subject: bool = False) -> None:
    if isinstance(nominal, Phrase):
        _phrase(out, nominal, at)
    elif isinstance(nominal, Pronoun):
        out.append((nominal.english[0 if is_subject else 1], (at + parts.NOUN,)))
    elif isinstance(nominal, Name):
        out.append((nominal.english, (at + parts.NOUN,)))
    else:
        _pair(out, nominal, at)


def _pair(out: list[Token], pair: Pair, at: int) -> None:
    _nominal(out, pair.first, parts.inside(at + parts.NOUN))
    out.append(("and", (at + parts.DETERMINER,)))
    _nominal(out, pair.second, parts.inside(at + parts.OWNER))


def _phrase(out: list[Token], phrase: Phrase, at: int) -> None:
    start = len(out)
    if phrase.owner is not None:
        _nominal(out, phrase.owner, parts.inside(at + parts.OWNER))
        word, says = out[-1]
        out[-1] = (word + "'s", says)
    elif article := phrase.determiner.english[phrase.plural]:
        out += [(word, (at + parts.DETERMINER,)) for word in article.split()]
    if phrase.number is not None:
        out.append((phrase.number.english, (at + parts.COUNT,)))
    if phrase.very:
        out.append(("very", (at + parts.DEGREE,)))
    if phrase.adjective is not None:
        out.append((phrase.adjective.name, (at + parts.ADJECTIVE,)))
    out.append((phrase.noun.english[phrase.plural], (at + parts.NOUN,)))
    if out[start][0] == "a" and out[start + 1][0][0] in "aeiou":
        out[start] = ("an", out[start][1])
    if phrase.relative is not None:
        _relative(out, phrase, phrase.relative, at)


def _relative(out: list[Token], phrase: Phrase, relative: Relative, at: int) -> None:
    """`who sleeps`, `whom the man sees`, `in which we live`."""
    says, below = (at + parts.RELATIVE,), parts.inside(at + parts.RELATIVE)
    clause, is_person = relative.clause, phrase.noun.kind == "person"
    if relative.role == "subject":
        out.append(("who" if is_person else "that", says))
        _predicate(out, clause, below, THEY if phrase.plural else THIRD)
        return
    preposition = relative.preposition or clause.verb.preposition
    if preposition is not None:
        _preposition(out, preposition.english, below + parts.PLACE)
        out.append(("whom" if is_person else "which", says))
    else:
        out.append(("whom" if is_person else "that", says))
    _clause(out, clause, below)
