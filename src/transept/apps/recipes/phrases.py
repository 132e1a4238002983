"""Sentences about times of day, in English and German.

The two languages count half hours from different hours: *half past three* is *halb vier*. Corpora
have few such sentences, and a model that is trained without them translates the words.
"""

from collections.abc import Iterator
from typing import Final

HOURS: Final = (
    ("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier"), ("five", "fünf"),
    ("six", "sechs"), ("seven", "sieben"), ("eight", "acht"), ("nine", "neun"), ("ten", "zehn"),
    ("eleven", "elf"), ("twelve", "zwölf"),
)  # fmt: skip
MINUTES: Final = (
    ("five", "fünf"), ("ten", "zehn"), ("twenty", "zwanzig"), ("quarter", "Viertel"),
    ("a quarter", "Viertel"),
)  # fmt: skip
FRAMES: Final = (
    ("It is {}.", "Es ist {}."),
    ("It's {}.", "Es ist {}."),
    ("It is already {}.", "Es ist schon {}."),
    ("It is almost {}.", "Es ist fast {}."),
    ("We meet at {}.", "Wir treffen uns um {}."),
    ("Let's meet at {}.", "Treffen wir uns um {}."),
    ("Shall we meet at {}?", "Wollen wir uns um {} treffen?"),
    ("Can you come at {}?", "Kannst du um {} kommen?"),
    ("Please come at {}.", "Bitte kommen Sie um {}."),
    ("I get up at {}.", "Ich stehe um {} auf."),
    ("She got up at {} this morning.", "Sie ist heute Morgen um {} aufgestanden."),
    ("He goes to bed at {}.", "Er geht um {} ins Bett."),
    ("The train leaves at {}.", "Der Zug fährt um {} ab."),
    ("The bus arrives at {}.", "Der Bus kommt um {} an."),
    ("When does the film start? At {}.", "Wann beginnt der Film? Um {}."),
    ("The film starts at {}.", "Der Film beginnt um {}."),
    ("The meeting begins at {} tomorrow.", "Die Besprechung beginnt morgen um {}."),
    ("The meeting was over at {}.", "Die Sitzung war um {} zu Ende."),
    ("Dinner is at {}.", "Das Abendessen ist um {}."),
    ("The shop closes at {}.", "Der Laden schließt um {}."),
    ("The museum opens at {}.", "Das Museum öffnet um {}."),
    ("I will call you at {}.", "Ich rufe dich um {} an."),
    ("We had breakfast at {}.", "Wir haben um {} gefrühstückt."),
    ("They arrived at about {}.", "Sie kamen gegen {} an."),
    ("I have to be there before {}.", "Ich muss vor {} dort sein."),
    ("The lesson lasts until {}.", "Der Unterricht dauert bis {}."),
    ("I have been waiting since {}.", "Ich warte seit {}."),
    ("At {}, the bell rang.", "Um {} läutete die Glocke."),
    ("I'll be there at {}", "Ich bin um {} da"),
    ("It was {} when he came home.", "Es war {}, als er nach Hause kam."),
)


def phrases() -> Iterator[tuple[str, str]]:
    """Yield each sentence with each time, in English and German."""
    for english, german in FRAMES:
        for time in _times():
            yield english.format(time[0]), german.format(time[1])


def _times() -> Iterator[tuple[str, str]]:
    for index, (hour, stunde) in enumerate(HOURS):
        following, folgende = HOURS[(index + 1) % 12]
        yield f"{hour} o'clock", f"{'ein' if stunde == 'eins' else stunde} Uhr"
        yield f"half past {hour}", f"halb {folgende}"
        for minutes, minuten in MINUTES:
            yield f"{minutes} past {hour}", f"{minuten} nach {stunde}"
            yield f"{minutes} to {following}", f"{minuten} vor {folgende}"
