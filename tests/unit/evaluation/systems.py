"""A synthetic test set, and systems that make mistakes."""

import random

SUBJECTS = ["Die alte Brücke", "Unser Nachbar", "Das Nord-Süd-Gefälle", "Ein Zug", "Frau Lang"]
VERBS = ["trägt", "kennt", "sieht", "überholt", "verspricht"]
OBJECTS = ["den Fluss", "eine E-Mail", "3,5 Tonnen", "das Haus am See", "z.B. nichts"]
ENDINGS = [".", "!", ", sagt er.", " - wie immer.", " (seit 1990)."]


def references(count: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    parts = (SUBJECTS, VERBS, OBJECTS)
    return [
        " ".join(draw.choice(part) for part in parts) + draw.choice(ENDINGS) for _ in range(count)
    ]


def damaged(lines: list[str], share: float, seed: int = 1) -> list[str]:
    """The same lines, with this share of the words removed or replaced."""
    draw = random.Random(seed)
    outputs = []
    for line in lines:
        words = [
            draw.choice(["nicht", "Wind", ""]) if draw.random() < share else word
            for word in line.split(" ")
        ]
        outputs.append(" ".join(filter(None, words)))
    return outputs
