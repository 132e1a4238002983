"""Samples random clauses: a verb and its complements."""

from typing import Final, NamedTuple

from grammar import function_words as f
from grammar import parts
from grammar.dice import Dice
from grammar.draw_phrases import Phrases
from grammar.lexicon import Lexicon, Place, Use
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PRESENT,
    PROGRESSIVE,
    Clause,
    Nominal,
    Phrase,
    Prepositional,
    Quality,
    agreement,
)
from grammar.words import THIRD, Adjective, Adverbial, Modal, Name, Noun, Pronoun

MODAL, PAST_MODAL, LIKING = range(5, 8)
"""Sampled like the tenses, in place of one."""

Tenses = tuple[int, ...]

ANY_TENSE: Final[Tenses] = (
    *(PRESENT,) * 12,
    *(PROGRESSIVE,) * 7,
    *(PAST,) * 13,
    *(PERFECT,) * 6,
    *(FUTURE,) * 5,
    *(MODAL,) * 5,
    PAST_MODAL,
    LIKING,
)

FRAMES: Final = (
    *("alone",) * 15,
    *("object",) * 40,
    *("dative",) * 6,
    *("recipient",) * 8,
    *("preposition",) * 8,
    *("going",) * 7,
    "coming",
    *("staying",) * 7,
    *("quality",) * 8,
)

_MODALS: Final = (f.CAN, f.CAN, f.MUST, f.MUST, f.WANT, f.WANT, f.SHOULD, f.MAY, f.WOULD_LIKE)
_PAST_MODALS: Final = (f.CAN, f.MUST, f.WANT)
_WITHOUT_NOT: Final = (f.MUST, f.LIKE)
"""Never negated: `must not` does not negate `must`, nor `does not like to` just `gern`."""


class Setting(NamedTuple):
    """The context of a clause, which restricts its form."""

    tenses: Tenses = ANY_TENSE
    light: bool = False
    """Whether the clause is short, because there is a second one."""
    fronts: bool = True
    """Whether a part other than the subject may come first."""
    negation: float = 0.1


ALONE: Final = Setting()


class Clauses:
    """Samples meaningful clauses."""

    def __init__(self, words: Lexicon, dice: Dice, phrases: Phrases) -> None:
        self._words, self._dice, self._phrases = words, dice, phrases
        self._qualities = tuple(words.adjectives.items())
        self._passing = tuple(item for item in self._qualities if item[0].kind == "passing")
        homes = ("house", "hotel", "castle", "city", "village", "school")
        self._homes = Place(
            words.places["staying"][0].preposition, tuple(words.nouns[name] for name in homes)
        )

    def any(self, setting: Setting = ALONE) -> Clause:
        """Sample a clause of any kind."""
        frame = self._dice.pick(FRAMES)
        if frame == "quality":
            return self.quality(setting)
        return self.of(self._dice.pick(self._words.uses[frame]), setting)

    def of(self, use: Use, setting: Setting) -> Clause:
        """Sample a complete clause with this verb."""
        dice = self._dice
        tense, modal = self.tense(use, setting.tenses)
        negated = dice.happens(setting.negation) and modal not in _WITHOUT_NOT
        subject = self._phrases.subject(use.subjects, known=negated, light=setting.light)
        tense, subject = _clear(tense, modal, use, subject)
        clause = Clause(use.verb, subject, tense=tense, modal=modal, negated=negated)
        return self.fill(clause, use, setting)

    def about(
        self, subject: Phrase | Pronoun, use: Use, setting: Setting, *, keep: bool = False
    ) -> Clause:
        """Sample a clause with this subject, which another word expresses unless `keep` is set."""
        tense, modal = self.tense(use, setting.tenses)
        tense, _ = _clear(tense, modal, use, subject)
        clause = self.fill(Clause(use.verb, subject, tense=tense, modal=modal), use, setting)
        return clause if keep else clause._replace(subject=None)

    def without_object(self, thing: Phrase | None, use: Use, setting: Setting) -> Clause:
        """Sample a clause with this object, which another word expresses."""
        subject = self._phrases.other(use.subjects, thing, known=True, light=True)
        tense, modal = self.tense(use, setting.tenses)
        tense, subject = _clear(tense, modal, use, subject)
        return Clause(use.verb, subject, tense=tense, modal=modal)

    def fill(self, clause: Clause, use: Use, setting: Setting) -> Clause:
        """Add objects and adverbials to a verb and its subject."""
        clause = self._with_objects(clause, use, setting.light)
        clause = self._with_circumstances(clause, use, setting.light)
        if setting.fronts:
            clause = self._with_front(clause, use)
        return clause

    def quality(self, setting: Setting) -> Clause:
        """Sample a clause that describes a subject with an adjective."""
        dice = self._dice
        menu = self._passing if setting.light and dice.happens(0.7) else self._qualities
        adjective, nouns = dice.pick(menu)
        tense = dice.pick(setting.tenses)
        if tense not in (PRESENT, PAST, FUTURE):
            tense = PAST if tense == PAST_MODAL else PRESENT
        negated = dice.happens(setting.negation)
        subject = self._who(nouns, tense)
        quality = Quality(adjective, self._degree(adjective, negated=negated))
        time = None
        if adjective.kind == "passing" and dice.happens(0.25):
            time = self.time(PROGRESSIVE if tense == PRESENT else tense, None)
        leads = time is not None and setting.fronts and dice.happens(0.4)
        front = parts.TIME if leads else parts.SUBJECT
        return Clause(
            f.BE, subject, tense=tense, negated=negated, quality=quality, time=time, front=front
        )

    def tense(self, use: Use, tenses: Tenses) -> tuple[int, Modal | None]:
        """Sample a tense, and perhaps a modal verb."""
        tense = self._dice.pick(tenses)
        if tense == PROGRESSIVE and use.verb.stative:
            return PRESENT, None
        if tense == PERFECT and "state" in use.marks:
            return PRESENT, None
        if tense <= FUTURE:
            return tense, None
        if tense == LIKING:
            return PRESENT, (f.LIKE if "command" in use.marks else None)
        if use.verb.stative or use.subjects[0].kind != "person":
            return (PAST if tense == PAST_MODAL else PRESENT), None
        if tense == PAST_MODAL:
            return PAST, self._dice.pick(_PAST_MODALS)
        return PRESENT, self._dice.pick(_MODALS)

    # --- parts of a clause -----------------------------------------------------------------------

    def _who(self, nouns: tuple[Noun, ...], tense: int) -> Nominal:
        """Sample the definite subject of a quality, without an adjective."""
        subject = self._phrases.subject(nouns, known=True, light=True)
        if isinstance(subject, Phrase):
            return subject._replace(adjective=None, very=False)
        return f.US if subject is f.YOU and tense == PAST else subject

    def _degree(self, adjective: Adjective, *, negated: bool) -> Adverbial | None:
        chance = self._dice.roll()
        if adjective.kind == "colour" or chance > 0.4:
            return None
        return f.TOO if chance < 0.1 and not negated else f.VERY

    def _with_objects(self, clause: Clause, use: Use, light: bool) -> Clause:
        if not use.objects:
            return clause
        if "new" in use.marks:
            return clause._replace(object=self._something_new(clause, use, light))
        subject = clause.subject
        known = clause.negated and use.verb.preposition is not None
        thing = self._phrases.other(
            use.objects, subject, known=known, light=light, pronoun="name" not in use.marks
        )
        if clause.negated and isinstance(thing, Phrase) and not _deniable(thing):
            thing = thing._replace(determiner=f.THE, number=None)
        if use.frame != "recipient":
            return clause._replace(object=thing)
        people = self._words.uses["dative"][0].objects
        recipient = self._phrases.other(people, subject, known=clause.negated, light=True)
        return clause._replace(object=thing, recipient=recipient)

    def _something_new(self, clause: Clause, use: Use, light: bool) -> Phrase:
        thing = self._phrases.new(self._dice.pick(use.objects), light=light)
        if clause.negated and not _deniable(thing):
            return thing._replace(determiner=f.BARE, number=None)
        return thing

    def _with_circumstances(self, clause: Clause, use: Use, light: bool) -> Clause:
        dice, stative = self._dice, use.verb.stative
        place = self._place(use, light)
        time = adverb = manner = None
        if not stative and clause.modal is not f.LIKE:
            chance = dice.roll()
            if chance < (0.1 if light else 0.24) and not _is_timeless(clause):
                time = self.time(clause.tense, clause.modal)
            elif chance > 0.84 and not clause.negated and clause.modal is None:
                adverb = dice.pick(self._words.adverbs[clause.tense])
        somewhere = isinstance(place, Adverbial) and use.frame != "going"
        if use.manners and not (adverb or somewhere or clause.negated or light):
            manner = dice.pick(use.manners) if dice.happens(0.15) else None
        return clause._replace(place=place, time=time, adverb=adverb, manner=manner)

    def time(self, tense: int, modal: Modal | None) -> Adverbial:
        """Sample a time that fits the tense."""
        if modal is not None and tense == PRESENT:
            tense = FUTURE  # a modal verb refers to the future
        return self._dice.pick(self._dice.pick(self._words.times[tense]))

    def _place(self, use: Use, light: bool) -> Prepositional | Adverbial | None:
        dice, places, far = self._dice, self._words.places, "far" in use.marks
        if use.frame == "going":
            if dice.happens(0.15):
                return self._words.home
            if far:
                return Prepositional(f.TO, self._city())
            return self._phrases.place(dice.pick(places["going"]))
        if use.frame == "coming":
            return Prepositional(f.FROM, self._city())
        if use.frame == "staying":
            return self._abode() if far else self.whereabouts(resting=True)
        if use.frame == "recipient" or use.verb.stative or "nowhere" in use.marks:
            return None
        return self._circumstance(use, light)

    def _circumstance(self, use: Use, light: bool) -> Prepositional | Adverbial | None:
        """Sample where it happens, with whom or for whom; usually None."""
        dice, places, chance = self._dice, self._words.places, self._dice.roll()
        resting = use.frame == "alone"
        if light:
            return self.whereabouts(resting=resting) if chance < 0.06 else None
        if "for" in use.marks and chance < 0.1:
            return self._phrases.place(dice.pick(places["favour"]))
        if use.frame in ("alone", "object") and 0.1 < chance < 0.14:
            return self._phrases.place(dice.pick(places["company"]))
        return self.whereabouts(resting=resting) if chance > 0.82 else None

    def whereabouts(self, *, resting: bool) -> Prepositional | Adverbial:
        """Sample where something happens or, if `resting`, where it is, such as under a table."""
        chance, places = self._dice.roll(), self._words.places
        if chance < 0.14:
            return self._dice.pick(self._words.here)
        if chance < 0.26:
            return Prepositional(f.IN, self._city())
        menu = places["staying"] + places["resting"] if resting else places["staying"]
        return self._phrases.place(self._dice.pick(menu))

    def _abode(self) -> Prepositional:
        if self._dice.happens(0.5):
            return Prepositional(f.IN, self._city())
        return self._phrases.place(self._homes)

    def _city(self) -> Name:
        menu = self._words.cities if self._dice.happens(0.7) else self._words.countries
        return self._dice.pick(menu)

    def _with_front(self, clause: Clause, use: Use) -> Clause:
        chance = self._dice.roll()
        if clause.time is not None and chance < 0.4:
            return clause._replace(front=parts.TIME)
        stays = use.frame not in ("going", "coming", "staying")
        stays = stays and not clause.negated and not _is_with_person(clause.place)
        if clause.place is not None and stays and chance < 0.12:
            return clause._replace(front=parts.PLACE)
        thing = clause.object
        if (
            chance > 0.7
            and isinstance(thing, Phrase)
            and thing.determiner is f.THIS
            and thing.owner is None
            and isinstance(clause.subject, Pronoun)
            and clause.verb.preposition is None
            and clause.recipient is None
            and clause.place is None
        ):
            return clause._replace(front=parts.OBJECT)
        return clause


def _clear(tense: int, modal: Modal | None, use: Use, subject: Nominal) -> tuple[int, Nominal]:
    """Avoid forms that are ambiguous in English or odd in German.

    `They read it` may be present or past, so `are reading` is used. Forms such as `du sahst` are
    hardly ever used.
    """
    if subject is f.YOU and tense == PAST:
        return tense, f.US
    english = use.verb.english
    if english.base == english.past and tense == PRESENT and modal is None:
        return (tense if agreement(subject) == THIRD else PROGRESSIVE), subject
    return tense, subject


def _deniable(thing: Phrase) -> bool:
    """Whether `not` is unambiguous: not with `many`, `every` or three."""
    return thing.number is None and thing.determiner not in (f.MANY, f.SOME, f.EVERY, f.ALL)


def _is_timeless(clause: Clause) -> bool:
    """Whether a time would be ambiguous: `um 2 Uhr 40 Bücher`, `does not work every day`."""
    if clause.negated and clause.tense == PRESENT and clause.modal is None:
        return True
    number = clause.object.number if isinstance(clause.object, Phrase) else None
    return number is not None and number.english.isdigit()


def _is_with_person(place: Prepositional | Adverbial | None) -> bool:
    if not isinstance(place, Prepositional) or not isinstance(place.nominal, Phrase):
        return False
    return place.nominal.noun.kind == "person"
