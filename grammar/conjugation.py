"""Conjugates verbs: regular ones from the infinitive, others from their principal parts."""

import re
from typing import Final

from grammar.words import EnglishVerb, GermanVerb

_NEEDS_E: Final = re.compile(r"([td]|[fg]n|chn)$")
"""Stems that take an e before -t and -st: arbeitet, öffnet, zeichnet."""

_INSEPARABLE: Final = ("be", "er", "ge", "ver", "über", "zer")
"""Prefixes after which the participle has no ge-."""


def english_verb(written: str) -> EnglishVerb:
    """Parse `base[/past/participle[/progressive]] [words that follow]`."""
    head, *tail = written.split()
    base, *parts = head.split("/")
    past = parts[0] if parts else _ed(base)
    return EnglishVerb(
        base,
        "has" if base == "have" else _s(base),
        past,
        parts[1] if parts else past,
        parts[2] if len(parts) > 2 else _ing(base),
        tuple(tail),
    )


def _s(base: str) -> str:
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    return _without_y(base) + "ies" if _ends_in_y(base) else base + "s"


def _ed(base: str) -> str:
    if _ends_in_y(base):
        return _without_y(base) + "ied"
    return base + "d" if base.endswith("e") else base + "ed"


def _ing(base: str) -> str:
    return base.removesuffix("e") + "ing" if not base.endswith("ee") else base + "ing"


def _ends_in_y(base: str) -> bool:
    return base.endswith("y") and base[-2] not in "aeou"


def _without_y(base: str) -> str:
    return base[:-1]


def german_verb(written: str) -> GermanVerb:
    """Parse `[prefix|]infinitive[/third/past/participle][(s)]`."""
    takes_sein = written.endswith("(s)")
    prefix, _, body = written.removesuffix("(s)").rpartition("|")
    infinitive, *parts = body.split("/")
    stem = infinitive[:-1] if infinitive.endswith(("eln", "ern")) else infinitive[:-2]
    e = "e" if _NEEDS_E.search(stem) else ""
    third, past, participle = parts or (stem + e + "t", stem + e + "te", _participle(stem, e))
    return GermanVerb(
        prefix,
        _present(infinitive, stem, third),
        past_forms(past),
        _imperative(infinitive, stem, third, regular=not parts),
        prefix + infinitive,
        (f"{prefix}zu{infinitive}",) if prefix else ("zu", infinitive),
        prefix + participle,
        takes_sein,
    )


def past_forms(third: str) -> tuple[str, ...]:
    """Return all five forms of the preterite."""
    plural = third + "n" if third.endswith("e") else third + "en"
    second = third + ("est" if third.endswith(("s", "ß", "t", "d")) else "st")
    return (third, second, third, plural, plural)


def modal_forms(third: str, infinitive: str) -> tuple[str, ...]:
    """Return all five present forms of preterite-present verbs: kann, muss, weiß."""
    second = third + ("t" if third.endswith(("s", "ß")) else "st")
    return (third, second, third, infinitive, infinitive)


def _participle(stem: str, e: str) -> str:
    without_ge = stem.startswith(_INSEPARABLE) or stem.endswith("ier")
    return ("" if without_ge else "ge") + stem + e + "t"


def _present(infinitive: str, stem: str, third: str) -> tuple[str, ...]:
    if not third.endswith("t"):
        return modal_forms(third, infinitive)
    body = third[:-1]
    second = third if body.endswith(("s", "ß", "z")) else body + "st"
    return (_first(infinitive, stem), second, third, infinitive, infinitive)


def _first(infinitive: str, stem: str) -> str:
    """Return the first person: mache, füttere, but lächle."""
    return stem[:-2] + "le" if infinitive.endswith("eln") else stem + "e"


def _imperative(infinitive: str, stem: str, third: str, *, regular: bool) -> str:
    if regular:
        return _first(infinitive, stem)
    body = third.removesuffix("t")
    if "i" in body and "i" not in stem:  # e becomes i: gib, lies, nimm
        return body
    return stem + "e" if stem.endswith(("t", "d")) else stem
