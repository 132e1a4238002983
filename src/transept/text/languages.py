"""Codes and names of languages."""

import re

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


def is_code(text: str) -> bool:
    """Whether a text looks like an ISO 639 language code: two or three lowercase letters.

    A script or a region may follow, as in the tags of OPUS-MT: `pt_br`, `cmn_Hans`.
    """
    return re.fullmatch("[a-z]{2,3}(_[A-Za-z]{2,4})*", text) is not None


def pair_of(text: str) -> tuple[str, str]:
    """The source and the target language in `en-de`. Empty if the text is not a language pair."""
    source, _, target = text.partition("-")
    return (source, target) if is_code(source) and is_code(target) else ("", "")


def name_of(code: str) -> str:
    """The English name of a language. Its code if the name is unknown."""
    return NAMES.get(code, code)
