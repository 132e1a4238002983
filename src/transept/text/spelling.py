"""German that was written without umlauts and ß, as a model knows it.

    Koennen Sie die Tuer schliessen?    Können Sie die Tür schließen?
    die neue Poesie, Michael            unchanged

`ue` is not always `ü`. A vocabulary knows: the right spelling of a word has fewer subwords. So
umlauts are restored where they save subwords, in sentences without any umlaut, in which two words
agree or one is clear. ß is restored in words that always have one: Swiss text and capitals do not.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

_WORD = re.compile(r"[^\W\d_]*[aouAOU]e[^\W\d_]*")
# Not in `neue`, `Frauen`, `Quelle`, `die Oele`, `Michael`.
_DIGRAPH = re.compile(r"(?<![aeäqAEÄQ])[uU]e|(?<!i)[oO]e|[aA]e(?!l\b)")
_UMLAUTS: Final = str.maketrans("aouAOU", "äöüÄÖÜ")
_HAS_UMLAUT = re.compile("[äöüÄÖÜ]")
# Not in `Masse`, `Preissenkung`, `aussehen`, `Passage`.
_SHARP_S = re.compile(
    r"(?<=\bstra)ss(?=e)|(?<=[^s]stra)ss(?=e)|(?<=gro)ss|(?<=gr[öü])ss|(?<=\bf[uü])ss(?!el)"
    r"|(?<=\bspä)ss|(?<=\bspa)ss|(?<=sü)ss|(?<=st[oö])ss|(?<=blo)ss|(?<=\bma)ss(?=nahm|geb)"
    r"|(?<=mä)ss(?=ig|\b)|(?<=äu)ss(?=er)|(?<=\bau)ss(?=er|en(?!d))|(?<=drau)ss(?=en)"
    r"|(?<=(?:[lngf]|h)ie)ss|(?<=\b[hw]ei)ss|(?<=flei)ss|(?<=drei)ss(?=ig)",
    re.IGNORECASE,
)


Encode = Callable[[str], Sequence[int]]
"""Splits a text into subwords."""


def respelt(text: str, encode: Encode) -> str:
    """A German text with its umlauts and ß."""
    return with_sharp_s(with_umlauts(text, encode))


def with_umlauts(text: str, encode: Encode) -> str:
    """A text with umlauts in place of `ae`, `oe` and `ue`, if it was written without them."""
    if _HAS_UMLAUT.search(text):
        return text
    saved = {word: _saved(word, encode) for word in set(_WORD.findall(text))}
    better = {word: n for word, n in saved.items() if n > 0}
    clear = any(n > 1 or len(encode(_umlauts(word))) == 1 for word, n in better.items())
    if not clear and len(better) < 2:
        return text
    return _WORD.sub(lambda word: _umlauts(word[0]) if word[0] in better else word[0], text)


def _saved(word: str, encode: Encode) -> int:
    """The number of subwords that umlauts save. A capital may only begin the sentence."""
    pairs = ((word, _umlauts(word)), (word.lower(), _umlauts(word).lower()))
    return max(len(encode(given)) - len(encode(restored)) for given, restored in pairs)


def _umlauts(word: str) -> str:
    return with_sharp_s(_DIGRAPH.sub(lambda found: found[0][0].translate(_UMLAUTS), word))


def with_sharp_s(text: str) -> str:
    """A text with ß where it is certain.

    Example:
        >>> with_sharp_s("Bitte Tür schliessen, glatte Strasse")
        'Bitte Tür schließen, glatte Straße'
    """
    return _SHARP_S.sub("ß", text)
