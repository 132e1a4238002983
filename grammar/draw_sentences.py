"""Samples random sentences: statements, questions and commands of one or two clauses."""

from dataclasses import dataclass
from typing import Final

from grammar import function_words as f
from grammar import parts
from grammar.dice import Dice
from grammar.draw_clauses import ANY_TENSE, MODAL, Clauses, Setting, Tenses
from grammar.draw_phrases import Phrases
from grammar.lexicon import Lexicon, Use
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PRESENT,
    PROGRESSIVE,
    Clause,
    Joined,
    Nominal,
    Phrase,
    Relative,
    Sentence,
)
from grammar.words import Adverbial, Conjunction, Noun

_NOW: Final[Tenses] = (PRESENT, PRESENT, PROGRESSIVE)
_JOINTS: Final[tuple[tuple[Conjunction, Tenses, Tenses], ...]] = (
    (f.BECAUSE, _NOW, _NOW),
    (f.BECAUSE, (PAST,), (PAST,)),
    (f.BECAUSE, (FUTURE, PERFECT, MODAL), (PRESENT,)),
    (f.ALTHOUGH, _NOW, _NOW),
    (f.ALTHOUGH, (PAST,), (PAST,)),
    (f.IF, (FUTURE, PRESENT, MODAL), (PRESENT,)),
    (f.IF, (FUTURE,), (PRESENT,)),
    (f.WHENEVER, (PRESENT,), (PRESENT,)),
    (f.ONCE, (PAST,), (PAST,)),
    (f.ONCE, (PAST,), (PAST,)),
    (f.WHILE, (PAST,), (PAST,)),
    (f.WHILE, (PROGRESSIVE,), (PROGRESSIVE,)),
    (f.BEFORE, (PAST,), (PAST,)),
    (f.BEFORE, (FUTURE,), (PRESENT,)),
)
"""Which tenses go together on the two sides of a conjunction."""

_WEATHER: Final = (f.IF, f.WHENEVER, f.ONCE, f.BECAUSE, f.ALTHOUGH)
_OF_A_MOMENT: Final = (f.BEFORE, f.ONCE, f.WHILE)
_ASKED: Final = Setting(light=True, fronts=False, negation=0.0)
_RELATIVE: Final = Setting((PRESENT, PROGRESSIVE, PAST, PAST, PERFECT), True, False, 0.05)
_MAY_HAVE_RELATIVE: Final = (f.THE, f.A, f.BARE, f.EVERY, f.ALL, f.MANY, f.SOME)
_ACTIVE: Final = ("alone", "object", "dative", "recipient", "preposition", "going")
_LASTING: Final = ("sleep", "work", "sing", "dance", "play", "wait", "swim")
_SPEAKING: Final[Tenses] = (PRESENT, PRESENT, PAST)


class Sentences:
    """Samples sentences."""

    def __init__(self, words: Lexicon, dice: Dice) -> None:
        self._words, self._dice = words, dice
        self._phrases = Phrases(words, dice)
        self._clauses = Clauses(words, dice, self._phrases)
        self._menus = _menus(words)
        shapes = (
            (self._plain, 57),
            (self._two_clauses, 10),
            (self._reported, 5),
            (self._indirect_question, 4),
            (self._coordinated, 3),
            (self._yes_or_no, 6),
            (self._question, 6),
            (self._command, 3),
            (self._trying, 3),
        )
        self._shapes = tuple(shape for shape, weight in shapes for _ in range(weight))

    def draw(self) -> Sentence:
        """Sample the next sentence."""
        return self._dice.pick(self._shapes)()

    # --- statements ------------------------------------------------------------------------------

    def _plain(self) -> Sentence:
        clause = self._clauses.any()
        chance = self._dice.roll()
        if chance < 0.1:
            clause = self._about_subject(clause)
        elif chance < 0.22:
            clause = self._about_object(clause)
        return Sentence(clause)

    def _about_subject(self, clause: Clause) -> Clause:
        subject = clause.subject
        if not isinstance(subject, Phrase) or clause.front != parts.SUBJECT:
            return clause
        return clause._replace(subject=self._with_relative(subject))

    def _about_object(self, clause: Clause) -> Clause:
        """Add a relative clause to an object that ends the clause; elsewhere it is ambiguous."""
        thing = clause.object
        if not isinstance(thing, Phrase) or clause.front == parts.OBJECT:
            return clause
        if clause.place is not None or clause.manner is not None:
            return clause
        if clause.time is not None and clause.front != parts.TIME:
            return clause
        return clause._replace(object=self._with_relative(thing))

    def _two_clauses(self) -> Sentence:
        conjunction, main_tenses, tenses = self._dice.pick(_JOINTS)
        leads = self._dice.happens(0.35)
        before = Setting(main_tenses, light=True, fronts=not leads)
        behind = Setting(tenses, light=True, fronts=False)
        if conjunction in _WEATHER and self._dice.happens(0.12):
            main = self._clauses.any(before)
            second = self._weather(conjunction, self._dice.pick(tenses))
        elif conjunction in _OF_A_MOMENT:
            main, second = self._event(before), self._event(behind)
        else:
            main, second = self._clauses.any(before), self._clauses.any(behind)
        return Sentence(main, joined=Joined(conjunction, second, leads))

    def _event(self, setting: Setting) -> Clause:
        """Sample a single event at a time."""
        use = self._dice.pick(self._menus.dynamic)
        return self._clauses.of(use, setting._replace(negation=0.0))._replace(adverb=None)

    def _weather(self, conjunction: Conjunction, tense: int) -> Clause:
        if tense == PRESENT and conjunction not in (f.IF, f.WHENEVER):
            tense = PROGRESSIVE
        return Clause(self._dice.pick((f.RAIN, f.SNOW)), f.IT, tense=tense)

    def _coordinated(self) -> Sentence:
        tenses = (self._dice.pick((PRESENT, PROGRESSIVE, PAST, PAST, PERFECT, FUTURE)),)
        first = self._clauses.any(Setting(tenses, light=True))
        second = self._clauses.any(Setting(tenses, light=True, fronts=False))
        return Sentence(first, joined=Joined(self._dice.pick((f.AND, f.BUT)), second))

    def _reported(self) -> Sentence:
        use = self._dice.pick(self._words.uses["knowing"])
        denied = 0.2 if use.verb.name in ("think", "believe") else 0.0
        main = self._clauses.of(use, Setting(_SPEAKING, light=True, negation=denied))
        tenses = (PAST,) if main.tense == PAST else ANY_TENSE
        said = self._clauses.any(Setting(tenses, light=True, fronts=False))
        return Sentence(main, joined=Joined(f.THAT, said))

    def _indirect_question(self) -> Sentence:
        dice, uses = self._dice, self._words.uses
        if dice.happens(0.5):
            main = self._clauses.of(uses["asking"][0], Setting(_SPEAKING, light=True, negation=0.0))
        else:
            main = self._clauses.of(
                uses["knowing"][0], Setting(_SPEAKING, light=True, negation=0.6)
            )
        tenses = (PAST,) if main.tense == PAST else _ASKED.tenses
        setting = _ASKED._replace(tenses=tenses)
        if dice.happens(0.4):
            return Sentence(main, joined=Joined(f.WHETHER, self._clauses.any(setting)))
        return Sentence(main, joined=Joined(None, self._asking(setting)))

    def _trying(self) -> Sentence:
        """Sample a sentence in which someone tries, begins or promises to do something."""
        main = self._clauses.of(
            self._dice.pick(self._words.uses["trying"]),
            Setting((PRESENT, PROGRESSIVE, PAST, PAST, PERFECT), light=True),
        )
        deed = self._deed(main.subject, negated=False)
        return Sentence(main._replace(place=None, time=None, infinitive=deed, front=parts.SUBJECT))

    def _deed(self, subject: Nominal | None, *, negated: bool) -> Clause:
        """Sample a voluntary action."""
        use = self._dice.pick(self._menus.volitional)
        clause = Clause(use.verb, subject, negated=negated)
        clause = self._clauses.fill(clause, use, Setting(light=True, fronts=False))
        return clause._replace(subject=None, adverb=None, time=None)

    # --- relative clauses ------------------------------------------------------------------------

    def _with_relative(self, phrase: Phrase) -> Phrase:
        if phrase.owner is not None or phrase.determiner not in _MAY_HAVE_RELATIVE:
            return phrase
        noun, chance = phrase.noun, self._dice.roll()
        if chance < 0.12 and noun in self._words.places["staying"][0].nouns:
            return phrase._replace(relative=self._of_place())
        if chance < 0.6 and noun in self._menus.by_subject:
            use = self._dice.pick(self._menus.by_subject[noun])
            clause = self._clauses.about(phrase, use, _RELATIVE)
            return phrase._replace(relative=Relative("subject", clause))
        if noun in self._menus.by_object:
            use = self._dice.pick(self._menus.by_object[noun])
            clause = self._clauses.without_object(phrase, use, _RELATIVE)
            return phrase._replace(relative=Relative("object", clause))
        return phrase

    def _of_place(self) -> Relative:
        use = self._dice.pick(self._menus.lasting)
        clause = self._clauses.of(use, _RELATIVE)._replace(place=None)
        return Relative("place", clause, self._words.places["staying"][0].preposition)

    # --- questions and commands ------------------------------------------------------------------

    def _yes_or_no(self) -> Sentence:
        return Sentence(self._clauses.any(_ASKED), "question")

    def _question(self) -> Sentence:
        return Sentence(self._asking(_ASKED), "question")

    def _asking(self, setting: Setting) -> Clause:
        """Sample a clause that starts with a question word."""
        chance = self._dice.roll()
        if chance < 0.2:
            return self._asking_where(setting)
        if chance < 0.3:
            tenses = (PRESENT, PAST, FUTURE) if setting.tenses == ANY_TENSE else setting.tenses
            return self._asking_circumstance(f.WHEN, setting._replace(tenses=tenses))
        if chance < 0.45:
            return self._asking_circumstance(f.WHY, setting)
        if chance < 0.7:
            return self._clauses.about(
                f.WHO, self._dice.pick(self._menus.personal), setting, keep=True
            )
        return self._asking_object(setting)

    def _asking_where(self, setting: Setting) -> Clause:
        use = self._dice.pick(self._menus.local)
        clause = self._clauses.of(use, setting)
        where = f.WHERE_TO if use.frame == "going" else f.WHERE
        return clause._replace(place=where, front=parts.PLACE)

    def _asking_circumstance(self, word: Adverbial, setting: Setting) -> Clause:
        clause = self._clauses.of(self._dice.pick(self._menus.dynamic), setting)
        return clause._replace(time=word, adverb=None, front=parts.TIME)

    def _asking_object(self, setting: Setting) -> Clause:
        """Sample a question for the object: who or what."""
        use = self._dice.pick(self._menus.direct)
        noun = self._dice.pick(use.objects)
        clause = self._clauses.without_object(None, use, setting)
        asked = f.WHO if noun.kind == "person" else f.WHAT
        return clause._replace(object=asked, front=parts.OBJECT)

    def _command(self) -> Sentence:
        clause = self._deed(f.YOU, negated=self._dice.happens(0.15))
        return Sentence(clause, "command", please=self._dice.happens(0.4))


@dataclass(frozen=True, slots=True)
class _Menus:
    """The alternatives for each form of sentence."""

    volitional: tuple[Use, ...]
    dynamic: tuple[Use, ...]
    personal: tuple[Use, ...]
    direct: tuple[Use, ...]
    lasting: tuple[Use, ...]
    local: tuple[Use, ...]
    by_subject: dict[Noun, list[Use]]
    by_object: dict[Noun, list[Use]]
    """For each noun, the verbs it can be the subject of, and those it can be the object of."""


def _menus(words: Lexicon) -> _Menus:
    uses = words.uses
    active = [use for frame in _ACTIVE for use in uses[frame]]
    deeds = tuple(use for use in uses["object"] if not use.verb.stative)
    lasting = tuple(use for use in uses["alone"] if use.verb.name in _LASTING)
    by_subject, by_object = _uses_by_noun(words)
    return _Menus(
        volitional=tuple(use for use in active if "command" in use.marks),
        dynamic=tuple(use for use in active if not use.verb.stative),
        personal=tuple(use for use in active if use.subjects[0].kind == "person"),
        direct=(*uses["object"], *(use for use in uses["dative"] if "command" in use.marks)),
        lasting=lasting,
        local=(*lasting, *uses["staying"], *uses["going"], *deeds),
        by_subject=by_subject,
        by_object=by_object,
    )


def _uses_by_noun(words: Lexicon) -> tuple[dict[Noun, list[Use]], dict[Noun, list[Use]]]:
    by_subject: dict[Noun, list[Use]] = {}
    by_object: dict[Noun, list[Use]] = {}
    for frame in ("alone", "object", "dative", "preposition", "going", "staying"):
        for use in words.uses[frame]:
            for noun in use.subjects:
                by_subject.setdefault(noun, []).append(use)
            if use.verb.preposition is not None and use.verb.german.prefix:
                continue  # `the child after whom she looks` is not grammatical
            for noun in use.objects:
                by_object.setdefault(noun, []).append(use)
    return by_subject, by_object
