"""Changes to training pairs that teach a model the text that users write.

A model learns to copy the symbols of protected spans only from pairs that contain them, and to
translate lines without a full stop or without capitals only from such lines. A corpus of debates
has hardly any. So some pairs are changed before they are tokenized:

    I live in Hamburg.             Ich wohne in Hamburg.
    I live in ⓪.                   Ich wohne in ⓪.
    I live in Hamburg              Ich wohne in Hamburg
    i live in hamburg.             Ich wohne in Hamburg.
    I liev in Hamburg.             Ich wohne in Hamburg.
"""

import random
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from transept.config import Checks
from transept.text.french import FRENCH, straight
from transept.text.protection import MaskPool
from transept.text.spans import protected

Pair = tuple[str, str]

# Words that are equal in both languages and begin with a capital letter or contain a digit are
# mostly names and numbers.
_NAME = re.compile(r"(?<![\w-])(?<!\d[.,: ])(?:[A-ZÀÄÇÈÉÊÖÜ]\w{2,}|\w*\d\w*)(?![\w-]|[.,: ]\d)")
_MOST_MASKS = 3
"""Masks of one kind. More of them in one sentence are too rare to matter."""
_BEFORE = ("{} ", "{} ", "{}, ", "{}: ")
_AFTER = (" {}", " {}", ": {}", " ({})")
_STOP = re.compile(r"[^\S\n]?[.!]\Z")
# A capital may begin a name, which must not be corrected.
_SPELT = re.compile(r"(?<!\w)[a-zàâäçèéêîôöùûüß][^\W\d_]{3,}")
_APOSTROPHE = re.compile(r"(?<=[a-z])['’](?=(?:t|s|re|ve|ll|d|m)\b)")
_PLAIN = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "œ": "oe"}
    | dict(zip("àâçèéêëîïôùûÀÇÈÉÊ", "aaceeeeiiouuACEEE", strict=True))
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Variation:
    """The fraction of training pairs that are changed in each way.

    Protected spans are always masked where both sides have them, as in translation.
    """

    names: float = 0.0
    """Pairs in which names are masked, of those with a name that both sides share."""
    inserted: float = 0.0
    """Pairs that get a mask at the start or the end of both sides."""
    unstopped: float = 0.0
    """Pairs that lose the full stop or exclamation mark at their end."""
    lowercase: float = 0.0
    """Pairs whose source is written in lower case, except perhaps its first letter."""
    # None instead of 0, so that records without this value stay valid.
    misspelt: float | None = None
    """Pairs whose source has wrong letters, or lacks umlauts, accents or apostrophes."""
    seed: int = 1
    """Another seed changes other pairs."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        for key in ("names", "inserted", "unstopped", "lowercase"):
            checks.fraction(key)
        if self.misspelt is not None:
            checks.fraction("misspelt")
        checks.done()

    def __call__(self, pair: Pair, languages: Pair) -> Pair:
        """Change a pair. The result depends only on the pair and the seed."""
        if FRENCH in languages:
            pair = straight(pair[0]), straight(pair[1])
        # A checksum, because the hash of a string differs between processes.
        draw = random.Random(zlib.crc32("\n".join(pair).encode(), self.seed))
        masks = MaskPool()
        pair = _masked(pair, _shared(pair, languages), masks)
        if draw.random() < self.names:
            pair = _masked(pair, _names(pair, draw), masks)
        if draw.random() < self.unstopped and all(map(_STOP.search, pair)):
            pair = _STOP.sub("", pair[0]), _STOP.sub("", pair[1])
        if draw.random() < self.lowercase:
            pair = _lower(pair[0], draw), pair[1]
        if draw.random() < self.inserted:
            pair = _inserted(pair, masks, draw)
        return self.misspell(pair[0]), pair[1]

    def misspell(self, source: str) -> str:
        """Misspell a source, or not. The result depends only on the source and the seed."""
        if self.misspelt is None:
            return source
        draw = random.Random(zlib.crc32(source.encode(), self.seed))
        return _misspelt(source, draw) if draw.random() < self.misspelt else source


class _Shared(NamedTuple):
    """Text that occurs once on each side, in the form of each."""

    source: str
    target: str
    is_figure: bool


# Copies of a pair with other changes have the same spans.
@lru_cache(maxsize=1 << 12)
def _shared(pair: Pair, languages: Pair) -> list[_Shared]:
    """The protected spans of the source that the target has, too."""
    source, target = pair
    found = []
    for span in protected(source, *languages):
        here = source[span.start : span.end]
        # `15 h` is the beginning of `15 heures`.
        long, plain = span.target.replace(" h", " heures"), span.target.replace("\u202f", " ")
        forms = (long, span.target, plain, here)
        there = next((form for form in forms if form in target), here)
        if source.count(here) == 1 and target.count(there) == 1:
            found.append(_Shared(here, there, span.is_figure))
    return found[:_MOST_MASKS]


def _names(pair: Pair, draw: random.Random) -> list[_Shared]:
    """Some of the names that occur once on both sides."""
    once = [{word for word, n in Counter(_NAME.findall(side)).items() if n == 1} for side in pair]
    names = sorted(once[0] & once[1], key=lambda name: (pair[0].index(name), name))
    some = [name for name in names if draw.random() < 0.6][:_MOST_MASKS]
    return [_Shared(name, name, name.isdigit()) for name in some]


def _masked(pair: Pair, spans: Sequence[_Shared], masks: MaskPool) -> Pair:
    source, target = pair
    for span in spans:
        mask = masks.next(span.is_figure)
        source = source.replace(span.source, mask, 1)
        target = target.replace(span.target, mask, 1)
    return source, target


def _lower(source: str, draw: random.Random) -> str:
    lower = source.lower()
    return lower if draw.random() < 0.5 else lower[:1].upper() + lower[1:]


def _inserted(pair: Pair, masks: MaskPool, draw: random.Random) -> Pair:
    """Insert a mask at the start, or before the punctuation at the end."""
    mask = masks.next(is_figure=False)
    if draw.random() < 0.5:
        form = draw.choice(_BEFORE).format(mask)
        return form + pair[0], form + pair[1]
    form = draw.choice(_AFTER).format(mask)
    source, target = (re.sub(r"(?=[.!?]?\Z)", lambda _: form, side, count=1) for side in pair)
    return source, target


def _misspelt(source: str, draw: random.Random) -> str:
    """A text as it is written in a hurry, or without the keys of its language."""
    if draw.random() < 0.5:
        source = _APOSTROPHE.sub("", source.translate(_PLAIN))
    words = [*_SPELT.finditer(source)]
    chosen = draw.sample(words, min(len(words), 1 + len(words) // 6))
    pieces = [*source]
    for word in chosen:
        at = draw.randrange(word.start() + 1, word.end() - 1)
        one, other = pieces[at : at + 2]
        pieces[at : at + 2] = draw.choice((("", other), (one * 2, other), (other, one)))
    return "".join(pieces)
