"""The names of languages, and a modest guess which of a few a text is written in.

The guess knows the scripts that belong to one language, and of some languages that share the
Latin alphabet their commonest words and the letters that only they have. It says how sure it is,
and chooses only among the languages that are served.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

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

_COMMON_WORDS = {
    "de": "der die das und ist nicht ein eine ich sie wir zu den dem mit auf für von es im auch "
    "sich dass hat haben sind war wie aber wenn oder nur noch wird bei einen kein",
    "en": "the and is of to in that it was for on are with as his they be at this have from or "
    "had by not but what were we when your can there an which their if will would you he she i",
    "es": "el la los las de que y en un una es no por con para como más pero su al lo se del está "
    "muy sin sobre también me hay",
    "fr": "le la les des et est un une dans que qui pour pas sur avec ce il elle nous vous je ne "
    "sont au du plus mais être cette ou comme son ses",
    "it": "il lo la gli le di che e è un una non per con sono del della nel ma come si più anche "
    "questo alla dei ha ho",
    "nl": "de het een en van is dat niet in op te zijn met voor er maar om ook als bij dit aan ik "
    "je wij hij ze was naar wat geen",
    "pt": "o a os as de que e em um uma não por com para como mais mas seu ao do da se no na está "
    "são foi ele ela muito também",
    "sv": "och att det är som en ett på av för med den inte jag du han hon vi de om till har var "
    "men så kan",
}
_OWN_LETTERS = {
    "de": "äöüß", "es": "ñ¿¡áíóú", "fr": "çèêëîïûœàâé", "it": "àèéìòù", "nl": "ë",
    "pt": "ãõçáâêí", "sv": "åäö", "pl": "ąęłńśźż", "cs": "ěřůčšžý", "tr": "ğışç", "hu": "őű",
    "ro": "ăâîșț", "da": "æøå", "nb": "æøå", "fi": "äö", "vi": "ăđơư",
}  # fmt: skip
_SCRIPTS = {
    "LATIN": (*_OWN_LETTERS, "en", "id", "eo", "ca", "et", "lt", "lv", "sk", "sl"),
    "CYRILLIC": ("ru", "uk", "bg"),
    "GREEK": ("el",),
    "ARABIC": ("ar", "fa"),
    "HEBREW": ("he",),
    "DEVANAGARI": ("hi",),
    "THAI": ("th",),
    "HANGUL": ("ko",),
    "HIRAGANA": ("ja",),
    "KATAKANA": ("ja",),
    "CJK": ("zh", "ja"),
}
_WORDS = {code: frozenset(words.split()) for code, words in _COMMON_WORDS.items()}
_IN_SCRIPT, _COMMON_WORD, _OWN_LETTER = 4.0, 1.5, 0.8
"""How much a language's script, one of its words, one of its letters speaks for it."""
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
    text = text[:LOOKED_AT].lower()
    evidence = {code: _evidence(code, text) for code in languages}
    if not any(evidence.values()):
        return [Guess(code, 0.0) for code in languages]
    highest = max(evidence.values())
    weights = {code: math.exp(value - highest) for code, value in evidence.items()}
    # A language that is not served is as likely as no evidence at all.
    total = sum(weights.values()) + math.exp(-highest)
    guesses = [Guess(code, round(100 * weight / total, 1)) for code, weight in weights.items()]
    return sorted(guesses, key=lambda one: -one.confidence)


def _evidence(code: str, text: str) -> float:
    words, own = _WORDS.get(code, frozenset()), _OWN_LETTERS.get(code, "")
    n_common = sum(word in words for word in re.findall(r"[^\W\d_]+", text))
    n_own = sum(letter in own for letter in text)
    scripts = Counter(_script(letter) for letter in text if letter.isalpha())
    n_letters = scripts.total()
    if not n_letters:
        return 0.0
    n_in_script = sum(n for script, n in scripts.items() if code in _SCRIPTS.get(script, ()))
    by_script = 0.0 if scripts.keys() <= {"LATIN"} else _IN_SCRIPT * n_in_script / n_letters
    return by_script + _COMMON_WORD * n_common + _OWN_LETTER * n_own


def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]
