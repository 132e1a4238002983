"""Final punctuation, quotation marks and capitals of a translation, which follow the source.

A model that was trained on whole sentences ends every line with a full stop, and sometimes forgets
to close a quotation. These rules repair the output. They do not change its words.
"""

import re
import unicodedata
from collections import Counter
from typing import Final, NamedTuple

from transept.text.sentences import CLOSERS

MARKS: Final = ".!?…:;,"
"""Final punctuation of the languages that separate words by spaces. A greeting may end with a
comma."""
_STYLES: Final = (("„", "“"), ("„", "”"), ("“", "”"), ("«", "»"), ("»", "«"), ('"', '"'))
"""Opening and closing quotation marks. A pair of another style is not a pair."""
_SINGLE_STYLES: Final = (("‚", "‘"), ("‘", "’"), ("'", "'"))
_QUOTES: Final = "".join({*"".join(one + other for one, other in _STYLES)})
_CLOSING: Final = {'"': '"', "„": "“", "“": "”", "”": "”", "«": "»", "»": "«"}
_QUOTE = re.compile(f"[{_QUOTES}]")
_BRACKET = re.compile(r"[()\[\]]")
# French has a space before `?` and before `»`.
_MARKED = re.compile(rf"\s?([{re.escape(MARKS)}]*)(\s?[{re.escape(CLOSERS)}]*)\Z")
_STRESSED = re.compile(
    r"\b(?:NOT|CANNOT|(?:DO|DOES|MUST)N['’]T|NEVER|NOTHING|ALWAYS|ONLY|MUST"
    r"|NICHT|NICHTS|NIE|NIEMALS|KEINE?[MNRS]?|IMMER|NUR|MUSS|MÜSSEN|DARF|DÜRFEN"
    r"|PAS|JAMAIS|RIEN|AUCUNE?|TOUJOURS|SEULEMENT|DOIT|DOIVENT|DEVEZ)\b"
)
_POLITE = re.compile(r"\b(?:sie|ihnen|ihre[mnrs]?)\b")
_SINGLE = re.compile(
    # An apostrophe within a word, as in `don’t`, does not end a quotation.
    r"(?<![\w'’])(?:‘(?:[^‘’]|(?<=\w)’(?=\w))+?’|‚[^‚‘]+?‘|'(?:[^']|(?<=\w)'(?=\w)){3,}?')(?!\w)"
)
_OPENING_SINGLE = re.compile(r"(?<![\w'’])[‘‚'](?=[\w‘‚'])")
_CLOSING_SINGLE = re.compile(r"(?<=[\w.,!?‘’'])[’‘'](?!\w)")
_DOUBLE_OPENING: Final = {"‘": "“", "‚": "„", "'": '"'}
_DOUBLE_CLOSING: Final = {"’": "”", "‘": "“", "'": '"'}
_TO_SINGLE: Final = str.maketrans('„“”«»"', "‚‘’‹›'")
_GUILLEMETS = re.compile(r"«([^«»]*)»|»([^«»]*)«")
_KNOWN_QUOTES: Final = {"de": "„{}“", "en": "“{}”"}
"""The marks of languages whose corpora hardly have any others."""
_QUOTES_AROUND: Final = {
    "de": ("„{}“", "‚{}‘"),
    "en": ("“{}”", "‘{}’"),
    "fr": ("« {} »", "« {} »"),
}
"""How a language writes double and single quotation marks."""
_HALVES: Final = {
    ("en", "fr"): str.maketrans("“”", "«»"),
    ("de", "en"): str.maketrans("„“»«", "“”“”"),
    ("en", "de"): str.maketrans("“”", "„“"),
}
WINDOWS: Final = {code: bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xA0)}
"""The characters of Windows in place of control characters: text in its encoding that was read as
Latin-1 has these, and a model trained on such text writes them."""
_SMALL_WORD = re.compile(
    r"\A(?:An?|The|This|That|These|Those|There|He|She|It|We|You|They|His|Her|Its|Our|Your|Their|My"
    r"|And|But|Or|So|If|When|While|Where|Who|Which|Because|Although|Since|After|Before|As|At|By|For"
    r"|From|In|Of|On|To|With|Not|No|Some)\b"
)
_CLAUSE_END = re.compile(r"[,;:.!?…]|\s[–—-]\s|\Z")


def follow(source: str, output: str) -> str:
    """The output with the final punctuation, the quotation marks and the first case of the source.

    Example:
        >>> follow("Save changes", "Änderungen speichern.")
        'Änderungen speichern'
        >>> follow('He said "yes".', 'Er sagte „ja.')
        'Er sagte „ja“.'
    """
    if not output or not source:
        return output
    output = with_first_case(source, output.translate(WINDOWS))
    return _quoted(source, _ended(source, output))


def with_first_case(source: str, output: str) -> str:
    """The output with a capital at its start, if the source has one."""
    first = next((one for one in source if one.isalpha()), "")
    if first.isupper() and output[:1].islower() and source[0].isalpha():
        return output[0].upper() + output[1:]
    return output


def with_small_start(output: str) -> str:
    """The output without a capital at its start, except that of an acronym."""
    return output if output[1:2].isupper() else output[:1].lower() + output[1:]


def with_small_word(output: str) -> str:
    """The English output without a capital at its start, unless it is a name or `I`.

    Example:
        >>> with_small_word("A hat"), with_small_word("Anna")
        ('a hat', 'Anna')
    """
    return _SMALL_WORD.sub(lambda found: found[0].lower(), output)


def stable_start(output: str) -> str:
    """The start of an output that `follow` does not change, except for its first letter."""
    return _QUOTE.split(output.translate(WINDOWS))[0].rstrip(f"{MARKS} ")


def in_capitals(text: str) -> bool:
    """Whether a text is written in capitals: at least two words, or one of four letters."""
    letters = [character for character in text if character.isalpha()]
    if len(letters) < 4 or not all(map(str.isupper, letters)):
        return False
    return " " in text.strip() or len(letters) > 5


def sentence_case(text: str) -> str:
    """A text in lower case with a capital at its start, as a model knows it.

    The polite German `Sie` keeps its capital: signs and dialogs rarely mean `sie`.
    """
    lower = _POLITE.sub(lambda found: found[0].capitalize(), text.lower())
    for at, character in enumerate(lower):
        if character.isalpha():
            return lower[:at] + character.upper() + lower[at + 1 :]
    return lower


def unstressed(text: str) -> str:
    """A text whose stressed words, such as `NOT`, are not in capitals.

    A model has rarely read them in capitals, and may omit them, which changes the meaning.

    Example:
        >>> unstressed("Do NOT open. NEVER! NATO")
        'Do not open. Never! NATO'
    """

    def changed(found: re.Match[str]) -> str:
        begins = re.search(r"(?:\A|[.!?]\s)\W*\Z", text[: found.start()])
        return found[0].capitalize() if begins else found[0].lower()

    return _STRESSED.sub(changed, text)


class _End(NamedTuple):
    """A text without its end, the final punctuation, and closing quotes and brackets after it."""

    body: str
    marks: str
    closers: str


def _end(text: str) -> _End:
    found = _MARKED.search(text)
    assert found is not None, "the pattern also matches an empty string"
    return _End(text[: found.start()], found[1], found[2])


def _ended(source: str, output: str) -> str:
    """The output with the final punctuation of the source."""
    wanted, given = _end(source), _end(output)
    if wanted.marks == given.marks or not given.body:
        return output
    if not wanted.marks and not _is_word(source[-1]) and source[-1] not in CLOSERS:
        return output  # ends in another symbol, such as a wide full stop
    if not given.marks and not _is_word(given.body[-1]):
        return output
    body = given.body
    # `etc.` at the end of a line without a full stop keeps its own.
    if not wanted.marks and given.marks == "." and body.rsplit(None, 1)[-1] in _ABBREVIATIONS:
        return output
    return body + wanted.marks + given.closers


_ABBREVIATIONS: Final = frozenset({"etc", "usw", "Inc", "Ltd", "Co", "Jr", "Nr", "No", "Str", "ca"})


def _is_word(character: str) -> bool:
    """Whether it is part of a word. A private-use character stands for protected text."""
    return character.isalnum() or unicodedata.category(character) == "Co"


# --- quotation marks ---------------------------------------------------------------------------


def in_double_quotes(text: str) -> str:
    """A text whose single quotation marks are double, as a model knows them.

    Example:
        >>> in_double_quotes("The word ‘freedom’ isn’t ‘new’.")
        'The word “freedom” isn’t “new”.'
    """
    if _QUOTE.search(text):
        return text

    def changed(found: re.Match[str]) -> str:
        quoted = found[0]
        return _DOUBLE_OPENING[quoted[0]] + quoted[1:-1] + _DOUBLE_CLOSING[quoted[-1]]

    return _SINGLE.sub(changed, text)


def without_guillemets(text: str, language: str) -> str:
    """A text in which quotations have the marks that a model of the language knows.

    Example:
        >>> without_guillemets("Das «Genie» kommt.", "de")
        'Das „Genie“ kommt.'
    """
    if form := _KNOWN_QUOTES.get(language):
        # French has spaces within guillemets.
        return _GUILLEMETS.sub(
            lambda found: form.format((found[1] or found[2] or "").strip()), text
        )
    return text


def marks(text: str) -> tuple[int, int, Counter[str]]:
    """How many quotation marks, quotations within them, and brackets of each kind a text has."""
    text = in_double_quotes(text)
    return len(_QUOTE.findall(text)), len(_SINGLE.findall(text)), Counter(_BRACKET.findall(text))


def in_single_quotes(text: str) -> str:
    """A text whose quotation marks are single."""
    return text.translate(_TO_SINGLE)


def quotes_around(text: str, start: int, end: int, language: str) -> tuple[str, str] | None:
    """The quotation marks of a part of a text, as the target language writes them.

    None if it has none. Straight marks stay straight, and those of a language that is not known
    here stay as they are.

    Example:
        >>> quotes_around("the ‘⓪’ key", 5, 6, "de")
        ('‚', '‘')
    """
    pair = text[start - 1 : start], text[end : end + 1]
    is_double = pair in _STYLES
    outside = text[start - 2 : start - 1] + text[end + 1 : end + 2]
    if not is_double and (pair not in _SINGLE_STYLES or any(map(str.isalnum, outside))):
        return None
    forms = _QUOTES_AROUND.get(language)
    if forms is None or pair[0] in "\"'":
        return pair
    opening, closing = forms[not is_double].split("{}")
    return opening, closing


def half_form(text: str, languages: tuple[str, str]) -> dict[int, int] | None:
    """How the target language writes the only quotation mark of a text: a table for `translate`.

    None if the text has several marks, or if the languages write them alike or are not known here.
    """
    return _HALVES.get(languages) if len(_QUOTE.findall(text)) == 1 else None


def _quoted(source: str, output: str) -> str:
    """The output with as many quotation marks as the source, if its own are not in pairs."""
    wanted = len(_QUOTE.findall(source))
    if wanted:
        doubled = _in_nested_quotes if _SINGLE.search(source) else in_double_quotes
        output = _double_ends(source, doubled(output))
    given = len(_QUOTE.findall(output))
    if not wanted and given:
        return _QUOTE.sub("", output)
    if wanted % 2 == 0 and given % 2 == 1:
        return _paired(_repaired(source, output))
    if wanted == 1:
        return _half(source, output)
    return _paired(output) if given % 2 == 0 else output


def _in_nested_quotes(output: str) -> str:
    """The output with double marks around all that is quoted, and single ones within."""
    doubles = [found.start() for found in _QUOTE.finditer(output)]
    given = "".join(output[at] for at in doubles)
    opened_twice = len(given) == 3 and given[0] == given[1] != given[2]
    if len(doubles) == 4 or opened_twice:
        first, last = doubles[1], doubles[2] + 1
        return output[:first] + in_single_quotes(output[first:last]) + output[last:]
    opening = _OPENING_SINGLE.search(output)
    closing = [found.start() for found in _CLOSING_SINGLE.finditer(output)]
    if doubles or opening is None or len(closing) < 2:
        return output
    start, end = opening.start(), closing[-1]
    quoted = _DOUBLE_OPENING[output[start]] + output[start + 1 : end] + _DOUBLE_CLOSING[output[end]]
    return output[:start] + quoted + output[end + 1 :]


def _double_ends(source: str, output: str) -> str:
    """The output with a double mark at an end that has a single one, if the source's is double."""
    if source[0] in _QUOTES:
        output = _DOUBLE_OPENING.get(output[0], output[0]) + output[1:]
    body, marks, closers = _end(output)
    if _QUOTE.search(_end(source).closers) and not _QUOTE.search(closers):
        closers = "".join(_DOUBLE_CLOSING.get(one, one) for one in closers)
    return body + marks + closers


def _repaired(source: str, output: str) -> str:
    """The output with its last quotation closed, or without the mark that has no partner."""
    marks = [found.start() for found in _QUOTE.finditer(output)]
    wanted = len(_QUOTE.findall(source))
    if len(marks) > wanted:
        at = marks[-1]
        return output[:at] + output[at + 1 :]
    if output[-1] in _QUOTES or _end(output).closers[-1:] in tuple(_QUOTES):
        # Closed, but not opened: a quotation of the whole sentence.
        opening = "„" if output[marks[-1]] == "“" else '"' if output[marks[-1]] == '"' else "“"
        return opening + output if len(marks) == 1 else output
    at = marks[-1]
    closing = _CLOSING[output[at]]
    if source.rstrip(MARKS)[-1:] in tuple(_QUOTES):
        body, ends, closers = _end(output)
        inside = source[-1:] in tuple(_QUOTES)
        return body + ends + closing + closers if inside else body + closing + ends + closers
    found = _CLAUSE_END.search(output, at + 2)
    end = found.start() if found else len(output)
    return output[:end] + closing + output[end:]


def _half(source: str, output: str) -> str:
    """The output with one mark, that of the source. Another sentence has the other half."""
    found = _QUOTE.search(source)
    assert found is not None, "the source has one mark"
    if found.start() == 0:
        return found[0] + _QUOTE.sub("", output)
    if not source[found.end() :].strip(MARKS + CLOSERS):
        return _QUOTE.sub("", output) + found[0]
    given = len(_QUOTE.findall(output))
    if given == 0:
        return _with_half(found[0], source[: found.start()], source[found.end() :], output)
    return _QUOTE.sub(found[0], output) if given == 1 else output


def _with_half(mark: str, before: str, after: str, output: str) -> str:
    """The output with a mark at the clause where the source has it: `… gehen“, sagte er`."""
    ends = [end for end in _CLAUSE_END.finditer(output) if end[0]]
    clause = len(_CLAUSE_END.findall(before)) - 1  # the pattern also matches the end of `before`
    if clause < len(ends) and ends[clause][0] == after[:1]:
        at = ends[clause].start()
        return output[:at] + mark + output[at:]
    if 0 < clause <= len(ends) and before.endswith(f"{ends[clause - 1][0]} "):
        at = ends[clause - 1].end()
        return f"{output[:at]} {mark}{output[at:].lstrip()}"
    return output


def _paired(output: str) -> str:
    """The output with pairs of one style each: that of the opening mark."""
    found = list(_QUOTE.finditer(output))
    pieces = list(output)
    for opening, closing in zip(found[::2], found[1::2], strict=False):
        if (opening[0], closing[0]) not in _STYLES:
            pieces[closing.start()] = _CLOSING[opening[0]]
    return "".join(pieces)
