"""The names of languages, and guessing the language of a text."""

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
"""The identifier's name of a language, if it is not the code that is used here."""
LOOKED_AT = 2_000
"""A guess looks at so many characters from the beginning of a text: these are enough."""

SURE = 50.0
"""With so much confidence, a guess is likelier than all others together."""


class Guess(NamedTuple):
    """A language, and how sure the guess is, from 0 to 100."""

    language: str
    confidence: float


def is_code(text: str) -> bool:
    """Whether a text looks like a language code: two or three small letters, as in ISO 639."""
    return re.fullmatch("[a-z]{2,3}", text) is not None


def name_of(code: str) -> str:
    """The English name of a language; its code if the name is unknown."""
    return NAMES.get(code, code)


def guess(text: str, languages: Sequence[str]) -> list[Guess]:
    """How likely it is that a text is in each of these languages, likeliest first.

    If the text tells nothing, all confidences are 0 and the languages are in the order given.
    """
    text = text[:LOOKED_AT]
    likelihood: dict[str, float] = {}
    if any(letter.isalpha() for letter in text):
        likelihood = dict(_identifier().rank(text))
    served = {code: likelihood.pop(_LABELS.get(code, code), 0.0) for code in languages}
    # The text may be in another language. So the likeliest of the others takes part too, and if it
    # is likely, the confidences are low.
    total = sum(served.values()) + max(likelihood.values(), default=1.0)
    guesses = [Guess(code, round(100 * value / total, 1)) for code, value in served.items()]
    return sorted(guesses, key=lambda one: -one.confidence)


def guess_each(texts: Sequence[str], languages: Sequence[str]) -> list[Guess]:
    """The likeliest language of each text. One that tells little has that of all together."""
    each = [guess(text, languages)[0] for text in texts]
    if len(texts) == 1 or all(one.confidence >= SURE for one in each):
        return each
    together = guess("\n".join(texts), languages)[0]
    return [one if one.confidence >= SURE else together for one in each]


@cache
def _identifier() -> Any:
    # Imported here because it takes most of a second: only the first guess waits for it.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
