"""HTML as a form of text.

Markup is not interpreted: everything from `<` to `>` is copied character for character. Text is
unescaped, translated and escaped again, so that a model cannot output markup. Block-level tags,
such as `<p>`, separate sentences. Inline tags, such as `<b>`, may be inside a sentence.
"""

import html
import re
from collections.abc import Iterator

from transept.text.markup import LINE_BREAKS, Form, Fragment

# Only two parts of this pattern match beyond the next `<`: a quoted value, which ends where another
# could begin, and an element that is kept up to its end tag. So matching takes time proportional to
# the length of any text.
MARKUP = re.compile(
    r"""<!---?> | <!--.*?(?:-->|\Z)
    # Elements that are copied with their content: elements that are not prose, footnote numbers,
    # and elements marked as not to be translated.
    | <(script|style|code|pre|textarea|svg|math)(?=[\s>])
      (?:[^"'<>/]|/(?!>)|"[^"]*"|'[^']*')*+>.*?(?:</\1\s*>|\Z)
    | <sup(?=[\s>])[^<>]*>(?:<(?!/sup)[^<>]*>|\d|[^<>\w]){0,40}+</sup\s*>
    | <(?P<kept>[a-z][a-z0-9-]*)(?=\s[^<>]*?
        (?:\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*(?:"[^"<>]*|'[^'<>]*)?\bnotranslate\b))
      [^<>]*>[^<>]*</(?P=kept)\s*>
    # A tag. A quoted value may contain any character. A tag may also have an unpaired quotation
    # mark, so the second form ignores quotes.
    | <[/!?]?[a-z](?:[^"'<>]|"[^"]*"|'[^']*')*+>
    | <[/!?]?[a-z][^<>]*>
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_WHOLE = re.compile(r"<([a-z][a-z0-9-]*)\b.*</\1\s*>", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
_AROUND_WORDS = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var",
})  # fmt: skip
_BETWEEN_WORDS = frozenset({"img", "wbr", "script", "style", "code", "svg", "math"})

_CHARACTER_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
"""What `html.unescape` replaces, such as `&amp;`."""


def fragments(text: str) -> Iterator[Fragment]:
    """The text and the markup of an HTML document."""
    at = 0
    for found in MARKUP.finditer(text):
        yield Fragment(text[at : found.start()])
        yield markup_fragment(found[0])
        at = found.end()
    yield Fragment(text[at:])


def markup_fragment(markup: str) -> Fragment:
    """A match of `MARKUP`, and whether it may be inside a sentence."""
    found = _NAME.match(markup)
    if found is None:
        return Fragment(markup, "inline" if markup.startswith("<!--") else "block")
    name, closes = found[2].lower(), bool(found[1])
    if name not in (_AROUND_WORDS if closes else _AROUND_WORDS | _BETWEEN_WORDS):
        return Fragment(markup, "block")
    stands_alone = markup.endswith("/>") or _WHOLE.fullmatch(markup) or name in _BETWEEN_WORDS
    return Fragment(markup, "inline", None if stands_alone else name, closes)


def escape(text: str) -> str:
    """Escape text for HTML. Quotation marks only need escaping in attributes, so they are kept."""
    return html.escape(text, quote=False)


HTML = Form(fragments, LINE_BREAKS, _CHARACTER_REFERENCE, html.unescape, escape)
