"""Sentences that a user might type. The grammar covers them, and train never contains them."""

from typing import Final

EXAMPLES: Final = (
    ("Where do you live?", "Wo wohnst du?"),
    ("Can you help me?", "Kannst du mir helfen?"),
    ("When does the train arrive?", "Wann kommt der Zug an?"),
    ("My sister lives in Berlin.", "Meine Schwester wohnt in Berlin."),
    ("The children are playing in the garden.", "Die Kinder spielen im Garten."),
    ("I would like to order a pizza.", "Ich möchte eine Pizza bestellen."),
    ("Please close the window!", "Bitte schließ das Fenster!"),
    ("She has not read the book.", "Sie hat das Buch nicht gelesen."),
    ("The farmer has 25 cows.", "Der Bauer hat 25 Kühe."),
    ("Yesterday we visited the old castle.", "Gestern besuchten wir das alte Schloss."),
    ("He has forgotten to turn off the light.", "Er hat vergessen, das Licht auszumachen."),
    ("If it rains, we will stay at home.", "Wenn es regnet, werden wir zu Hause bleiben."),
    (
        "I do not know if the train has arrived.",
        "Ich weiß nicht, ob der Zug angekommen ist.",
    ),
    (
        "The teacher gave the girl a book because she was sad.",
        "Der Lehrer gab dem Mädchen ein Buch, weil sie traurig war.",
    ),
    (
        "The dog that sleeps under the table belongs to my brother.",
        "Der Hund, der unter dem Tisch schläft, gehört meinem Bruder.",
    ),
)
"""English and German."""
