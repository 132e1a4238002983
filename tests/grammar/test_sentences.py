"""Sentences of several clauses, questions and commands: from meanings and by hand."""

import pytest
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PROGRESSIVE,
    Clause,
    Joined,
    Relative,
    Sentence,
)
from grammar.pairs import pair
from tests.grammar.meanings import (
    ANNA,
    EMMA,
    HERE,
    MY,
    PAUL,
    PETER,
    TODAY,
    YOUR,
    a,
    asks,
    at,
    np,
    preposition,
    says,
    some,
    the,
    verb,
)

from grammar import function_words as f
from grammar import parts

PAIRS = [
    # relative clauses
    (
        says(
            Clause(
                verb("laugh"),
                the("man", relative=Relative("subject", Clause(verb("sing"))), plural=True),
            )
        ),
        "The men who sing laugh.",
        "Die Männer, die singen, lachen.",
    ),
    (
        says(
            Clause(
                verb("pick up"),
                f.US,
                the(
                    "friend",
                    relative=Relative("object", Clause(verb("help"), PETER, tense=PERFECT)),
                ),
                tense=FUTURE,
            )
        ),
        "We will pick up the friend whom Peter has helped.",
        "Wir werden den Freund abholen, dem Peter geholfen hat.",
    ),
    (
        says(
            Clause(
                verb("stand"),
                the(
                    "house",
                    relative=Relative("place", Clause(verb("work"), f.SHE), preposition("in")),
                ),
                place=at("next to", the("school")),
            )
        ),
        "The house in which she works stands next to the school.",
        "Das Haus, in dem sie arbeitet, steht neben der Schule.",
    ),
    (
        says(
            Clause(
                verb("know"),
                f.HE,
                a("woman", relative=Relative("object", Clause(verb("dream of"), EMMA, tense=PAST))),
            )
        ),
        "He knows a woman of whom Emma dreamed.",
        "Er kennt eine Frau, von der Emma träumte.",
    ),
    # two clauses
    (
        Sentence(
            Clause(verb("stay"), f.US, tense=FUTURE, place=HERE["at home"]),
            joined=Joined(f.IF, Clause(f.RAIN, f.IT), leads=True),
        ),
        "If it rains, we will stay at home.",
        "Wenn es regnet, werden wir zu Hause bleiben.",
    ),
    (
        Sentence(
            Clause(verb("fall asleep"), the("king"), tense=PAST),
            joined=Joined(f.ONCE, Clause(verb("explain"), the("lawyer"), the("plan"), tense=PAST)),
        ),
        "The king fell asleep when the lawyer explained the plan.",
        "Der König schlief ein, als der Anwalt den Plan erklärte.",
    ),
    (
        Sentence(
            Clause(verb("know", "knowing"), ANNA),
            joined=Joined(f.THAT, Clause(verb("come back"), the("king"), tense=FUTURE)),
        ),
        "Anna knows that the king will come back.",
        "Anna weiß, dass der König zurückkommen wird.",
    ),
    (
        Sentence(
            Clause(verb("ask", "asking"), f.THEM),
            joined=Joined(f.WHETHER, Clause(verb("swim"), f.YOU, modal=f.CAN)),
        ),
        "They ask if you can swim.",
        "Sie fragen, ob du schwimmen kannst.",
    ),
    (
        Sentence(
            Clause(verb("know", "knowing"), f.I, negated=True),
            joined=Joined(None, Clause(verb("live"), f.HE, place=f.WHERE, front=parts.PLACE)),
        ),
        "I do not know where he lives.",
        "Ich weiß nicht, wo er wohnt.",
    ),
    (
        Sentence(
            Clause(verb("sing"), PAUL, tense=PROGRESSIVE),
            joined=Joined(
                f.BUT,
                Clause(
                    verb("listen to"),
                    the("child", plural=True),
                    f.HE,
                    negated=True,
                    tense=PROGRESSIVE,
                ),
            ),
        ),
        "Paul is singing, but the children are not listening to him.",
        "Paul singt, aber die Kinder hören ihm nicht zu.",
    ),
    (
        Sentence(
            Clause(verb("cook"), PAUL, some("soup")),
            joined=Joined(f.AND, Clause(verb("drink"), ANNA, some("tea"))),
        ),
        "Paul cooks soup and Anna drinks tea.",
        "Paul kocht Suppe und Anna trinkt Tee.",
    ),
    # questions and commands
    (
        asks(Clause(verb("visit"), f.YOU, np(YOUR, "grandmother"), tense=PERFECT)),
        "Have you visited your grandmother?",
        "Hast du deine Großmutter besucht?",
    ),
    (
        asks(Clause(verb("sell"), the("baker"), a("cake"), time=TODAY)),
        "Does the baker sell a cake today?",
        "Verkauft der Bäcker heute einen Kuchen?",
    ),
    (
        asks(Clause(verb("arrive"), f.WHO, tense=PAST)),
        "Who arrived?",
        "Wer kam an?",
    ),
    (
        asks(Clause(verb("help"), the("girl"), f.WHO, tense=PROGRESSIVE, front=parts.OBJECT)),
        "Who is the girl helping?",
        "Wem hilft das Mädchen?",
    ),
    (
        asks(Clause(verb("see"), the("girl"), f.WHO, tense=PAST, front=parts.OBJECT)),
        "Who did the girl see?",
        "Wen sah das Mädchen?",
    ),
    (
        asks(Clause(verb("go"), f.THEM, tense=PROGRESSIVE, place=f.WHERE_TO, front=parts.PLACE)),
        "Where are they going?",
        "Wohin gehen sie?",
    ),
    (
        asks(Clause(verb("cry"), the("baby"), tense=PROGRESSIVE, time=f.WHY, front=parts.TIME)),
        "Why is the baby crying?",
        "Warum weint das Baby?",
    ),
    (
        Sentence(Clause(verb("turn on"), None, the("lamp")), "command"),
        "Turn on the lamp!",
        "Mache die Lampe an!",
    ),
    (
        Sentence(Clause(verb("give"), None, the("ball"), the("dog")), "command", please=True),
        "Please give the dog the ball!",
        "Bitte gib dem Hund den Ball!",
    ),
    (
        Sentence(
            Clause(verb("throw away"), None, np(MY, "shoe", plural=True), negated=True), "command"
        ),
        "Do not throw away my shoes!",
        "Wirf meine Schuhe nicht weg!",
    ),
]


@pytest.mark.parametrize(("meaning", "english", "german"), PAIRS)
def test_a_meaning_is_said_in_both_languages(meaning: Sentence, english: str, german: str) -> None:
    assert pair(meaning)[:2] == (english, german)
