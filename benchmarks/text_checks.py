"""Checks of a translation that need no reference: punctuation, numbers, quotes, repetitions."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

BAD = {"\ufffd", *map(chr, range(0x80, 0xA0))}
"""The character that replaces bytes that are not text, and control characters."""
_CLOSERS = "\"'”’“‘»«›‹)]}>`"
_DASHES = "–—-"


def final_mark(text: str) -> str:
    """The kind of the final punctuation: one of `. ! ? … : ; , –`, or an empty string.

    Quotation marks, brackets and emoji after it are ignored.
    """
    end = len(text)
    while end and (
        text[end - 1].isspace() or text[end - 1] in _CLOSERS or _is_symbol(text[end - 1])
    ):
        end -= 1
    found = re.search(rf"[.!?…:;,{_DASHES}]*\Z", text[:end])
    marks = found[0] if found else ""
    for mark in "?!…":
        if mark in marks:
            return mark
    if ".." in marks:
        return "…"
    return "–" if marks[-1:] and marks[-1] in _DASHES else marks[-1:]


def _is_symbol(character: str) -> bool:
    """Whether it is an emoji or a part of one: a modifier, a joiner, a variation selector."""
    return unicodedata.category(character) in ("So", "Sk", "Cf", "Mn", "Me")


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ '’\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?")
_FORMATS = {
    "en": re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"),
    "de": re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+(?:,\d+)?"),
    "fr": re.compile(r"\d+(?:,\d+)?"),
}
"""Numbers of a language. The spaces of French ones are removed before they are compared."""
_WORDS = {
    "en": (
        "one first once january", "two second twice both february", "three third march",
        "four fourth april", "five fifth may", "six sixth june", "seven seventh july",
        "eight eighth august", "nine ninth september", "ten tenth october",
        "eleven eleventh november", "twelve twelfth dozen december",
    ),
    "de": (
        r"eins? eine[nmrs]? einmal erste\w? januar", r"zwei zweimal zweite\w? beide\w? februar",
        r"drei dreimal dritte\w? märz", r"vier viermal vierte\w? april",
        r"fünf fünfmal fünfte\w? mai", r"sechs sechsmal sechste\w? juni",
        r"sieben siebenmal siebte\w? juli", r"acht achtmal achte\w? august",
        r"neun neunmal neunte\w? september", r"zehn zehnmal zehnte\w? oktober",
        r"elf elfmal elfte\w? november", r"zwölf zwölfmal zwölfte\w? dutzend dezember",
    ),
    "fr": (
        "une? premi[eè]re?s? janvier", "deux deuxièmes? seconde?s? février",
        "trois troisièmes? mars", "quatre quatrièmes? avril", "cinq cinquièmes? mai",
        "six sixièmes? juin", "sept septièmes? juillet", "huit huitièmes? août",
        "neuf neuvièmes? septembre", "dix dixièmes? dizaine octobre", "onze onzièmes? novembre",
        "douze douzièmes? douzaine décembre",
    ),
}  # fmt: skip
"""Words for 1 to 12, with the months, which a date may have as numbers."""


def lost_numbers(source: str, output: str, direction: str) -> list[Decimal]:
    """The numbers of the source that the output lacks, as digits and, up to twelve, as words.

    The source has the number format of its language, and the output that of either language. Dates,
    times and versions are compared by their parts.

    Example:
        >>> lost_numbers("It costs 1,250 euros.", "Es kostet 1.520 Euro.", "en-de")
        [Decimal('1250')]
    """
    wanted = Counter(numbers(source, direction))
    found = Counter(n for readings in _readings(output) for n in readings)
    for value, words in enumerate(_WORDS[direction[3:]], start=1):
        pattern = rf"\b(?:{words.replace(' ', '|')})\b"
        found[Decimal(value)] += len(re.findall(pattern, output, re.IGNORECASE))
    return [value for value, times in wanted.items() if found[value] < times]


def numbers(source: str, direction: str) -> list[Decimal]:
    """The numbers of a source in digits."""
    language = direction[:2]
    if language == "fr":
        source = _SPACED.sub(lambda found: _without_spaces(found[0]), source)
    return [value for token in _NUMBER.findall(source) for value in _read(token, language)]


def _readings(text: str) -> Iterator[set[Decimal]]:
    """The values that each number of a text may have."""
    for token in (*_NUMBER.findall(text), *map(_without_spaces, _SPACED.findall(text))):
        whole = {n for language in _FORMATS for n in _read(token, language)}
        yield whole | {Decimal(part) for part in re.split("[.,:]", token)}


def _without_spaces(number: str) -> str:
    return re.sub(r"[^\d.,]", "", number)


def _read(token: str, language: str) -> list[Decimal]:
    """The value of a number, or those of its parts if it is a date, a time or a version.

    Parts that are zero are omitted: 3:00 may be translated as 3.
    """
    if not _FORMATS[language].fullmatch(token):
        return [value for part in re.split("[.,:]", token) if (value := Decimal(part))]
    group, point = (",", ".") if language == "en" else (".", ",")
    return [Decimal(token.replace(group, "").replace(point, "."))]


def double_quotes(text: str) -> int:
    """The number of double quotation marks of any style."""
    return len(re.findall(r'["„“”«»]', text))


def all_quotes(text: str) -> int:
    """The number of quotation marks, double and single. An apostrophe in a word is not one."""
    # Neither is the one of an elision: `d'« amitié »`.
    return double_quotes(text) + len(re.findall(r"[‚‹›]|(?<!\w)['’‘]|['’‘](?![\w«])", text))


def has_unbalanced_quotes(text: str) -> bool:
    """Whether a double quotation mark lacks the other one of its style."""
    curly = len(re.findall("[„“”]", text))
    return bool(text.count('"') % 2 or curly % 2 or text.count("«") != text.count("»"))


def brackets(text: str) -> Counter[str]:
    """How often each bracket occurs."""
    return Counter(re.findall(r"[()\[\]]", text))


_LONGEST_PHRASE = 8
_STUTTER = re.compile(r"([^\W\d_]{1,8}?)\1{5,}")


def has_loop(source: str, output: str) -> bool:
    """Whether the output repeats itself and the source does not.

    A loop is a phrase three times in a row, three words that occur four times in all, or a few
    letters six times in a row.
    """
    read, written = _words(source), _words(output)
    run = _longest_run(written)
    if run >= 3 and run > _longest_run(read):
        return True
    # A source may repeat two words, such as `dass er`, where the output needs three.
    often = _most_frequent(written, 3)
    if often >= 4 and often > 2 * _most_frequent(read, 2):
        return True
    return _stutter(output) > 2 * _stutter(source)


def _words(text: str) -> list[str]:
    # A sign may become two words: `$5 million`, `5 millions de dollars`.
    return re.findall(r"[^\W\d_]+|[$€£]", text.casefold())


def _longest_run(words: list[str]) -> int:
    """How often a phrase of a few words is repeated in a row, at most."""
    longest = 1
    for length in range(1, _LONGEST_PHRASE + 1):
        same = 0
        for at in range(length, len(words)):
            same = same + 1 if words[at] == words[at - length] else 0
            longest = max(longest, 1 + same // length)
    return longest


def _most_frequent(words: list[str], length: int) -> int:
    """How often a phrase of this number of words occurs, at most."""
    phrases = zip(*(words[start:] for start in range(length)), strict=False)
    return max(Counter(phrases).values(), default=1)


def _stutter(text: str) -> int:
    """The length of the longest word part in which a few letters repeat."""
    return max((len(found[0]) for found in _STUTTER.finditer(text)), default=0)


def share_of_capitals(text: str) -> float:
    """The share of capitals among letters that have both cases. ß is not counted."""
    cased = [letter for letter in text if letter.upper() != letter.lower() and letter != "ß"]
    return sum(map(str.isupper, cased)) / len(cased) if cased else 0.0
