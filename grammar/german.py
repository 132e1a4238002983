"""Expresses a meaning in German.

A main clause has its finite verb in second position, a question and a command in first, and a
subordinate clause at the end. Between the verb positions come the subject, known objects, time
and frequency, `nicht`, manner, place, new objects, and the object of a preposition.
"""

from typing import Final

from grammar import parts
from grammar.declension import (
    ADJECTIVE_ENDINGS,
    CONTRACTIONS,
    THE,
    WHO,
    like_a,
)
from grammar.function_words import BARE, A
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
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
    is_definite,
)
from grammar.parts import Token
from grammar.words import (
    DATIVE,
    GENITIVE,
    MIXED,
    NOMINATIVE,
    PLURAL,
    STRONG,
    THEY,
    THIRD,
    WEAK,
    Adverbial,
    Name,
    Preposition,
    Pronoun,
)

_HAVE: Final = ("habe", "hast", "hat", "haben", "haben")
_AM: Final = ("bin", "bist", "ist", "sind", "sind")
_BECOME: Final = ("werde", "wirst", "wird", "werden", "werden")
_NO: Final = like_a("kein")


def say(sentence: Sentence) -> list[Token]:
    """Return the tokens of the sentence, in order."""
    out: list[Token] = []
    clause, joined = sentence.clause, sentence.joined
    leads = joined is not None and joined.leads
    if joined is not None and leads:
        _joined(out, joined)
        out.append((",", (parts.COMMA,)))
    if sentence.please:
        out.append(("bitte", (parts.LINK,)))
    if sentence.mood == "command":
        _command(out, clause)
    elif leads or (sentence.mood == "question" and not _opens_with_question(clause)):
        _verb_first(out, clause, 0)
    else:
        _verb_second(out, clause, 0)
    if joined is not None and not leads:
        if joined.conjunction is None or joined.conjunction.german != "und":
            out.append((",", (parts.COMMA,)))
        _joined(out, joined)
    out.append((STOPS[sentence.mood], (parts.STOP,)))
    return out


def _joined(out: list[Token], joined: Joined) -> None:
    at, conjunction = parts.inside(parts.JOINED), joined.conjunction
    if conjunction is not None:
        out.append((conjunction.german, (at + parts.LINK,)))
        if not conjunction.subordinates:
            _verb_second(out, joined.clause, at)
            return
    _verb_last(out, joined.clause, at)


def _opens_with_question(clause: Clause) -> bool:
    """`Wer sieht das?`, `Was sieht er?`; but not `Sieht er das?`."""
    return clause.front != parts.SUBJECT or asks(clause.subject)


# --- clauses -----------------------------------------------------------------------------------


def _verb_second(out: list[Token], clause: Clause, at: int) -> None:
    _part(out, clause, clause.front, at)
    finite, tail = _verbs(clause, at, _agreement(clause), last=False)
    out.append(finite)
    _middle(out, clause, at, said=clause.front)
    out += tail
    _after(out, clause, at)


def _verb_first(out: list[Token], clause: Clause, at: int) -> None:
    finite, tail = _verbs(clause, at, _agreement(clause), last=False)
    out.append(finite)
    _middle(out, clause, at, said=0)
    out += tail
    _after(out, clause, at)


def _verb_last(out: list[Token], clause: Clause, at: int, agree: int | None = None) -> None:
    """A subordinate clause. `agree` is set if a relative pronoun is its subject."""
    said = 0
    if clause.front != parts.SUBJECT:
        said = clause.front
        _part(out, clause, said, at)
    finite, tail = _verbs(clause, at, _agreement(clause) if agree is None else agree, last=True)
    _middle(out, clause, at, said=said)
    out += tail
    out.append(finite)
    _after(out, clause, at)


def _command(out: list[Token], clause: Clause) -> None:
    verb = clause.verb.german
    out.append((verb.imperative, (parts.VERB,)))
    _middle(out, clause, 0, said=parts.SUBJECT)
    if verb.prefix:
        out.append((verb.prefix, (parts.VERB,)))


def _agreement(clause: Clause) -> int:
    assert clause.subject is not None
    return agreement(clause.subject)


def _middle(out: list[Token], clause: Clause, at: int, *, said: int) -> None:
    """Everything between the verb positions, without the fronted part."""
    by_kein = clause.negated and _takes_kein(clause)
    if said != parts.SUBJECT and clause.subject is not None:
        _part(out, clause, parts.SUBJECT, at)
    _objects(out, clause, at, said=said, known=True, by_kein=False)
    if clause.time is not None and said != parts.TIME:
        _adverbial(out, clause.time, at + parts.TIME)
    if clause.adverb is not None:
        _adverbial(out, clause.adverb, at + parts.ADVERB)
    if clause.modal is not None and not clause.modal.present:
        out.append(("gern", (at + parts.AUXILIARY,)))
    if clause.negated and not by_kein:
        out.append(("nicht", (at + parts.NOT,)))
    if clause.manner is not None:
        _adverbial(out, clause.manner, at + parts.MANNER)
    if clause.place is not None and said != parts.PLACE:
        _part(out, clause, parts.PLACE, at)
    _objects(out, clause, at, said=said, known=False, by_kein=by_kein)
    if clause.verb.preposition is not None and clause.object is not None and said != parts.OBJECT:
        _part(out, clause, parts.OBJECT, at)
    if clause.quality is not None:
        _quality(out, clause.quality, at)


def _takes_kein(clause: Clause) -> bool:
    """`does not see a dog` is `sieht keinen Hund`: a new object is negated at its article."""
    thing = clause.object
    return (
        isinstance(thing, Phrase)
        and thing.determiner in (A, BARE)
        and thing.owner is None
        and thing.number is None
        and clause.verb.preposition is None
    )


def _objects(
    out: list[Token], clause: Clause, at: int, *, said: int, known: bool, by_kein: bool
) -> None:
    """The objects without a preposition: the known ones if `known`, otherwise the new ones."""
    recipient, thing = clause.recipient, clause.object
    if recipient is not None and is_definite(recipient) == known:
        _nominal(out, recipient, DATIVE, at + parts.RECIPIENT)
    if thing is None or said == parts.OBJECT or clause.verb.preposition is not None:
        return
    # With a recipient, the thing given counts as new, unless `nicht` follows it.
    thing_known = is_definite(thing) and (recipient is None or clause.negated)
    if thing_known == known:
        if by_kein:
            assert isinstance(thing, Phrase)
            _phrase(out, thing, clause.verb.case, at + parts.OBJECT, no=at + parts.NOT)
        else:
            _nominal(out, thing, clause.verb.case, at + parts.OBJECT)


def _after(out: list[Token], clause: Clause, at: int) -> None:
    """The parts after the final verb: a relative clause, an infinitive."""
    thing = clause.object
    if isinstance(thing, Phrase) and thing.relative is not None:
        _relative(out, thing, thing.relative, at + parts.OBJECT)
    if clause.infinitive is not None:
        below = parts.inside(at + parts.VERB)
        start = len(out)
        _middle(out, clause.infinitive, below, said=parts.SUBJECT)
        if len(out) > start:  # an infinitive alone has no comma
            out.insert(start, (",", ()))
        out += [(word, (below + parts.VERB,)) for word in clause.infinitive.verb.german.with_zu]


def _part(out: list[Token], clause: Clause, part: int, at: int) -> None:
    """A subject, an object, a place or a time, in any position."""
    if part == parts.SUBJECT:
        subject = clause.subject
        assert subject is not None
        _nominal(out, subject, NOMINATIVE, at + parts.SUBJECT)
        if isinstance(subject, Phrase) and subject.relative is not None:
            _relative(out, subject, subject.relative, at + parts.SUBJECT)
            out.append((",", ()))
    elif part == parts.OBJECT:
        assert clause.object is not None
        if clause.verb.preposition is not None:
            _prepositional(out, clause.verb.preposition, clause.object, at + parts.OBJECT)
        else:
            _nominal(out, clause.object, clause.verb.case, at + parts.OBJECT)
    else:
        phrase = clause.place if part == parts.PLACE else clause.time
        if isinstance(phrase, Prepositional):
            _prepositional(out, phrase.preposition, phrase.nominal, at + part)
        elif phrase is not None:
            _adverbial(out, phrase, at + part)


def _quality(out: list[Token], quality: Quality, at: int) -> None:
    here = at + parts.QUALITY
    if quality.degree is not None:
        _adverbial(out, quality.degree, here + parts.DEGREE)
    out.append((quality.adjective.german, (here + parts.ADJECTIVE,)))


# --- verbs -------------------------------------------------------------------------------------


def _verbs(clause: Clause, at: int, agree: int, *, last: bool) -> tuple[Token, list[Token]]:
    """The finite verb, and the end of the clause: prefix, participle or infinitive."""
    verb, says, helps = clause.verb.german, (at + parts.VERB,), (at + parts.AUXILIARY,)
    tense, modal = clause.tense, clause.modal
    if modal is not None and modal.present:
        finite = (modal.past if tense == PAST else modal.present)[agree]
        return (finite, helps), [(verb.infinitive, says)]
    if tense == PERFECT:
        finite = (_AM if verb.takes_sein else _HAVE)[agree]
        return (finite, helps), [(verb.participle, says)]
    if tense == FUTURE:
        return (_BECOME[agree], helps), [(verb.infinitive, says)]
    finite = (verb.past if tense == PAST else verb.present)[agree]
    if not verb.prefix:
        return (finite, says), []
    if last:
        return (verb.prefix + finite, says), []
    return (finite, says), [(verb.prefix, says)]


# --- phrases -----------------------------------------------------------------------------------


def _adverbial(out: list[Token], adverbial: Adverbial, at: int) -> None:
    for offset, piece in enumerate(adverbial.german):
        out += [(word, (at + offset,)) for word in piece]


def _prepositional(out: list[Token], preposition: Preposition, nominal: Nominal, at: int) -> None:
    """A preposition and its phrase; `in dem` becomes `im`."""
    start = len(out)
    _nominal(out, nominal, preposition.case, at)
    word, says = out[start]
    contracted = CONTRACTIONS.get((preposition.german, word))
    if contracted is None:
        out.insert(start, (preposition.german, (at + parts.PREPOSITION,)))
    else:
        out[start] = (contracted, (at + parts.PREPOSITION, *says))


def _nominal(out: list[Token], nominal: Nominal, case: int, at: int) -> None:
    if isinstance(nominal, Phrase):
        _phrase(out, nominal, case, at)
    elif isinstance(nominal, Pronoun):
        out.append((nominal.german[case], (at + parts.NOUN,)))
    elif isinstance(nominal, Name):
        out.append((nominal.german, (at + parts.NOUN,)))
    else:
        _pair(out, nominal, case, at)


def _pair(out: list[Token], pair: Pair, case: int, at: int) -> None:
    _nominal(out, pair.first, case, parts.inside(at + parts.NOUN))
    out.append(("und", (at + parts.DETERMINER,)))
    _nominal(out, pair.second, case, parts.inside(at + parts.OWNER))


def _phrase(out: list[Token], phrase: Phrase, case: int, at: int, *, no: int | None = None) -> None:
    """A noun and the words that agree with it; with `no`, `kein` replaces the article."""
    noun, owner = phrase.noun, phrase.owner
    cell = 4 * case + (PLURAL if phrase.plural else noun.gender)
    declension = phrase.determiner.declension
    if no is not None:
        out.append((_NO[cell], (no, at + parts.DETERMINER)))
        declension = MIXED
    elif isinstance(owner, Name):
        out.append((owner.german + "s", (parts.inside(at + parts.OWNER) + parts.NOUN,)))
        declension = STRONG
    elif owner is not None:
        out.append((THE[cell], (at + parts.DETERMINER,)))
        declension = WEAK
    elif phrase.determiner.german:
        words = phrase.determiner.german[cell].split()
        out += [(word, (at + parts.DETERMINER,)) for word in words]
    if phrase.number is not None:
        out.append((phrase.number.german, (at + parts.COUNT,)))
    if phrase.very:
        out.append(("sehr", (at + parts.DEGREE,)))
    if phrase.adjective is not None:
        ending = ADJECTIVE_ENDINGS[declension][cell]
        stem = phrase.adjective.stem
        word = stem + (ending[1:] if stem.endswith("e") else ending)
        out.append((word, (at + parts.ADJECTIVE,)))
    out.append((noun.german[case + 4 if phrase.plural else case], (at + parts.NOUN,)))
    if isinstance(owner, Phrase):
        _phrase(out, owner, GENITIVE, parts.inside(at + parts.OWNER))


def _relative(out: list[Token], phrase: Phrase, relative: Relative, at: int) -> None:
    """A relative clause with the comma before it. The caller writes the comma after it."""
    says, below = (at + parts.RELATIVE,), parts.inside(at + parts.RELATIVE)
    column = PLURAL if phrase.plural else phrase.noun.gender
    clause = relative.clause
    out.append((",", ()))
    if relative.role == "subject":
        out.append((WHO[4 * NOMINATIVE + column], says))
        _verb_last(out, clause, below, agree=THEY if phrase.plural else THIRD)
        return
    preposition = relative.preposition or clause.verb.preposition
    case = clause.verb.case
    if preposition is not None:
        case = preposition.case
        out.append((preposition.german, (below + parts.PLACE + parts.PREPOSITION,)))
    out.append((WHO[4 * case + column], says))
    _verb_last(out, clause, below)
