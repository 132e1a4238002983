"""How many sentences there are."""

from collections.abc import Iterable

from transept.tasks.grammar.lexicon import Lexicon, Use
from transept.tasks.grammar.meaning import PAST
from transept.tasks.grammar.words import Noun


def count_statements(words: Lexicon, uses: Iterable[Use]) -> int:
    """How many English sentences are like `the old man bought the red car in the city yesterday`.

    Only these are counted: a subject and an object with `the`, singular or plural, with or
    without an adjective; one of the given verbs in the past; a place with `the`; a time. No two
    choices make the same sentence.
    """
    places = sum(len(place.nouns) for place in words.places["staying"])
    times = len({time for menu in words.times[PAST] for time in menu})
    return sum(_subjects_and_objects(words, use) for use in uses) * places * times


def _subjects_and_objects(words: Lexicon, use: Use) -> int:
    subjects = {noun: _phrases(words, noun) for noun in use.subjects}
    objects = {noun: _phrases(words, noun) for noun in use.objects}
    alike = sum(subjects[noun] * objects[noun] for noun in subjects.keys() & objects.keys())
    return sum(subjects.values()) * sum(objects.values()) - alike


def _phrases(words: Lexicon, noun: Noun) -> int:
    adjectives = sum(noun in said_of for said_of in words.adjectives.values())
    return (1 if noun.mass else 2) * (1 + adjectives)
