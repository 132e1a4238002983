"""The names of languages, and a guess which of a few a text is written in."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_LABELS = {"nb": "no"}
"""What the identifier calls a language, where that is not its code."""
LOOKED_AT = 2_000
"""Characters at the beginning of a text: enough to guess by."""


class Guess(NamedTuple):
    """A language, and how sure it is, of 100."""

    language: str
    confidence: float


def is_code(text: str) -> bool:
    """Whether it looks like a language code: two or three small letters, as in ISO 639."""
    return re.fullmatch("[a-z]{2,3}", text) is not None


def name_of(code: str) -> str:
    """What a language is called in English; an unknown one by its code."""
    return NAMES.get(code, code)


def guess(text: str, languages: Sequence[str]) -> list[Guess]:
    """How likely a text is in each of these languages, likeliest first.

    Where nothing speaks for any of them, all confidences are 0, in the order given.
    """
    text = text[:LOOKED_AT]
    likelihood: dict[str, float] = {}
    if any(letter.isalpha() for letter in text):
        likelihood = dict(_identifier().rank(text))
    served = {code: likelihood.pop(_LABELS.get(code, code), 0.0) for code in languages}
    # It may be in a language that is not served: the likeliest of those is one of the candidates.
    total = sum(served.values()) + max(likelihood.values(), default=1.0)
    guesses = [Guess(code, round(100 * value / total, 1)) for code, value in served.items()]
    return sorted(guesses, key=lambda one: -one.confidence)


@cache
def _identifier() -> Any:
    # Here, since it takes most of a second: only who asks for a guess waits for it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
