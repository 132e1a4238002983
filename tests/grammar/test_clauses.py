"""Statements of one clause, made from given meanings and written by hand."""

import pytest
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PROGRESSIVE,
    Clause,
    Joined,
    Pair,
    Prepositional,
    Quality,
    Sentence,
)
from grammar.pairs import pair
from grammar.words import Number
from tests.grammar.meanings import (
    ADJECTIVES,
    ALREADY,
    ANNA,
    CITIES,
    EMMA,
    HER,
    HERE,
    HIS,
    MY,
    NEVER,
    NOW,
    PAUL,
    PETER,
    THEIR,
    TODAY,
    TOMORROW,
    YESTERDAY,
    a,
    at,
    np,
    says,
    some,
    the,
    verb,
)

from grammar import function_words as f
from grammar import parts

PAIRS = [
    # agreement, and the present
    (says(Clause(verb("sleep"), the("dog"))), "The dog sleeps.", "Der Hund schläft."),
    (
        says(Clause(verb("sleep"), the("dog", plural=True))),
        "The dogs sleep.",
        "Die Hunde schlafen.",
    ),
    (says(Clause(verb("work"), f.YOU)), "You work.", "Du arbeitest."),
    (says(Clause(verb("open"), f.I, the("door"))), "I open the door.", "Ich öffne die Tür."),
    (
        says(Clause(verb("play"), Pair(ANNA, the("child")), tense=PROGRESSIVE)),
        "Anna and the child are playing.",
        "Anna und das Kind spielen.",
    ),
    # cases, articles and adjectives
    (
        says(Clause(verb("see"), the("man", "old"), a("dog", "small"), tense=PAST)),
        "The old man saw a small dog.",
        "Der alte Mann sah einen kleinen Hund.",
    ),
    (
        says(Clause(verb("give"), a("girl", "young"), a("apple", "red"), the("horse", "old"))),
        "A young girl gives the old horse a red apple.",
        "Ein junges Mädchen gibt dem alten Pferd einen roten Apfel.",
    ),
    (
        says(Clause(verb("help"), np(HER, "sister"), the("child", plural=True))),
        "Her sister helps the children.",
        "Ihre Schwester hilft den Kindern.",
    ),
    (
        says(Clause(verb("thank"), the("student"), the("neighbour", "friendly"), tense=PAST)),
        "The student thanked the friendly neighbour.",
        "Der Student dankte dem freundlichen Nachbarn.",
    ),
    (
        says(Clause(verb("drink"), f.SHE, some("water", "cold"), tense=PROGRESSIVE)),
        "She is drinking cold water.",
        "Sie trinkt kaltes Wasser.",
    ),
    (
        says(Clause(verb("trust"), np(f.EVERY, "child"), np(f.THIS, "doctor", plural=True))),
        "Every child trusts these doctors.",
        "Jedes Kind vertraut diesen Ärzten.",
    ),
    (
        says(
            Clause(verb("need"), np(f.MANY, "farmer", "poor", plural=True), a("lamp", "expensive"))
        ),
        "Many poor farmers need an expensive lamp.",
        "Viele arme Bauern brauchen eine teure Lampe.",
    ),
    (
        says(Clause(verb("clean"), f.US, np(f.ALL, "room", "dark", plural=True))),
        "We clean all dark rooms.",
        "Wir putzen alle dunklen Zimmer.",
    ),
    (
        says(Clause(verb("see"), f.HE, a("mountain", "high", very=True), tense=PERFECT)),
        "He has seen a very high mountain.",
        "Er hat einen sehr hohen Berg gesehen.",
    ),
    # owners
    (
        says(Clause(verb("belong to"), the("car", owner=the("teacher")), f.THEM)),
        "The teacher's car belongs to them.",
        "Das Auto des Lehrers gehört ihnen.",
    ),
    (
        says(Clause(verb("speak with"), f.I, the("neighbour", "old", owner=ANNA), tense=PAST)),
        "I spoke with Anna's old neighbour.",
        "Ich sprach mit Annas altem Nachbarn.",
    ),
    (
        says(Clause(verb("find"), PAUL, the("key", "small", owner=np(MY, "aunt")), tense=PERFECT)),
        "Paul has found my aunt's small key.",
        "Paul hat den kleinen Schlüssel meiner Tante gefunden.",
    ),
    # numbers
    (
        says(
            Clause(
                verb("have"),
                the("farmer"),
                some("cow", number=Number("25", "25")),
            )
        ),
        "The farmer has 25 cows.",
        "Der Bauer hat 25 Kühe.",
    ),
    (
        says(
            Clause(
                verb("follow"),
                f.US,
                some("horse", "black", number=Number("three", "drei")),
                tense=PERFECT,
            )
        ),
        "We have followed three black horses.",
        "Wir sind drei schwarzen Pferden gefolgt.",
    ),
    # separable verbs
    (
        says(Clause(verb("call"), the("woman"), np(HER, "son"), time=TODAY)),
        "The woman calls her son today.",
        "Die Frau ruft ihren Sohn heute an.",
    ),
    (
        says(Clause(verb("turn off"), f.HE, the("light"), tense=PERFECT)),
        "He has turned off the light.",
        "Er hat das Licht ausgemacht.",
    ),
    (
        Sentence(
            Clause(verb("laugh"), f.SHE),
            joined=Joined(f.BECAUSE, Clause(verb("call"), PETER, f.SHE)),
        ),
        "She laughs because Peter calls her.",
        "Sie lacht, weil Peter sie anruft.",
    ),
    (
        says(
            Clause(
                verb("try"),
                the("boy"),
                tense=PAST,
                infinitive=Clause(verb("call"), None, the("doctor")),
            )
        ),
        "The boy tried to call the doctor.",
        "Der Junge versuchte, den Arzt anzurufen.",
    ),
    (
        says(Clause(verb("begin"), the("baby"), tense=PERFECT, infinitive=Clause(verb("sleep")))),
        "The baby has begun to sleep.",
        "Das Baby hat begonnen zu schlafen.",
    ),
    (
        says(Clause(verb("look after"), f.YOU, the("child"), modal=f.MUST)),
        "You must look after the child.",
        "Du musst auf das Kind aufpassen.",
    ),
    # tenses and modal verbs
    (
        says(Clause(verb("get up"), the("queen"), tense=PERFECT, adverb=ALREADY)),
        "The queen has already got up.",
        "Die Königin ist schon aufgestanden.",
    ),
    (
        says(Clause(verb("visit"), f.US, the("museum", "new"), tense=FUTURE, time=TOMORROW)),
        "We will visit the new museum tomorrow.",
        "Wir werden das neue Museum morgen besuchen.",
    ),
    (
        says(Clause(verb("build"), np(THEIR, "brother"), a("boat"), tense=PAST, modal=f.WANT)),
        "Their brother wanted to build a boat.",
        "Ihr Bruder wollte ein Boot bauen.",
    ),
    (
        says(Clause(verb("read"), the("girl"), some("book"), modal=f.LIKE)),
        "The girl likes to read books.",
        "Das Mädchen liest gern Bücher.",
    ),
    (
        says(Clause(verb("wait"), the("friend", plural=True), tense=PAST, modal=f.MUST)),
        "The friends had to wait.",
        "Die Freunde mussten warten.",
    ),
    # negation
    (
        says(Clause(verb("know"), ANNA, the("king"), negated=True)),
        "Anna does not know the king.",
        "Anna kennt den König nicht.",
    ),
    (
        says(Clause(verb("see"), f.I, a("wolf"), tense=PAST, negated=True)),
        "I did not see a wolf.",
        "Ich sah keinen Wolf.",
    ),
    (
        says(Clause(verb("eat"), the("mouse"), some("potato"), negated=True)),
        "The mouse does not eat potatoes.",
        "Die Maus isst keine Kartoffeln.",
    ),
    (
        says(Clause(verb("open"), f.SHE, the("window"), modal=f.CAN, negated=True)),
        "She cannot open the window.",
        "Sie kann das Fenster nicht öffnen.",
    ),
    (
        says(Clause(verb("live"), PAUL, place=Prepositional(f.IN, CITIES["Vienna"]), negated=True)),
        "Paul does not live in Vienna.",
        "Paul wohnt nicht in Wien.",
    ),
    (
        says(Clause(verb("wait for"), f.THEM, the("train"), tense=FUTURE, negated=True)),
        "They will not wait for the train.",
        "Sie werden nicht auf den Zug warten.",
    ),
    (
        says(Clause(f.BE, the("soup"), quality=Quality(ADJECTIVES["hot"], f.VERY), negated=True)),
        "The soup is not very hot.",
        "Die Suppe ist nicht sehr heiß.",
    ),
    (
        says(Clause(verb("drink"), the("queen"), some("wine"), adverb=NEVER)),
        "The queen never drinks wine.",
        "Die Königin trinkt nie Wein.",
    ),
    # places: contraction, and the case that tells staying from going
    (
        says(Clause(verb("sleep"), the("cat"), place=at("in", the("kitchen")))),
        "The cat sleeps in the kitchen.",
        "Die Katze schläft in der Küche.",
    ),
    (
        says(Clause(verb("run"), the("cat"), place=at("into", the("garden"), "going"), tense=PAST)),
        "The cat ran into the garden.",
        "Die Katze lief in den Garten.",
    ),
    (
        says(Clause(verb("go"), f.US, place=at("to", the("station"), "going"), tense=PROGRESSIVE)),
        "We are going to the station.",
        "Wir gehen zum Bahnhof.",
    ),
    (
        says(Clause(verb("stand"), the("bus"), place=at("in front of", the("house", owner=PETER)))),
        "The bus stands in front of Peter's house.",
        "Der Bus steht vor Peters Haus.",
    ),
    (
        says(
            Clause(verb("travel"), EMMA, place=Prepositional(f.TO, CITIES["Munich"]), tense=FUTURE)
        ),
        "Emma will travel to Munich.",
        "Emma wird nach München reisen.",
    ),
    # word order: what is in front, what is known, what is new
    (
        says(
            Clause(
                verb("buy"), the("lawyer"), a("hat"), tense=PAST, time=YESTERDAY, front=parts.TIME
            )
        ),
        "Yesterday the lawyer bought a hat.",
        "Gestern kaufte der Anwalt einen Hut.",
    ),
    (
        says(Clause(verb("buy"), the("lawyer"), a("hat"), tense=PAST, time=YESTERDAY)),
        "The lawyer bought a hat yesterday.",
        "Der Anwalt kaufte gestern einen Hut.",
    ),
    (
        says(
            Clause(
                verb("dance"),
                the("bear", plural=True),
                place=at("under", the("tree"), "resting"),
                front=parts.PLACE,
            )
        ),
        "Under the tree the bears dance.",
        "Unter dem Baum tanzen die Bären.",
    ),
    (
        says(
            Clause(
                verb("read"),
                f.I,
                np(f.THIS, "letter"),
                tense=PERFECT,
                adverb=ALREADY,
                front=parts.OBJECT,
            )
        ),
        "This letter I have already read.",
        "Diesen Brief habe ich schon gelesen.",
    ),
    (
        says(
            Clause(
                verb("repair"),
                the("farmer"),
                a("radio"),
                tense=PAST,
                place=at("in", the("kitchen")),
                time=YESTERDAY,
            )
        ),
        "The farmer repaired a radio in the kitchen yesterday.",
        "Der Bauer reparierte gestern in der Küche ein Radio.",
    ),
    (
        says(Clause(verb("show"), f.HE, the("ring"), np(HIS, "mother"), time=TODAY)),
        "He shows his mother the ring today.",
        "Er zeigt seiner Mutter heute den Ring.",
    ),
    (
        says(
            Clause(verb("work"), the("lawyer"), time=NOW, tense=PROGRESSIVE, place=HERE["at home"])
        ),
        "The lawyer is working at home now.",
        "Der Anwalt arbeitet jetzt zu Hause.",
    ),
]


@pytest.mark.parametrize(("meaning", "english", "german"), PAIRS)
def test_a_meaning_is_said_in_both_languages(meaning: Sentence, english: str, german: str) -> None:
    assert pair(meaning)[:2] == (english, german)
