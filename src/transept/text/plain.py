"""Plain text as a form of text. Words may be emphasized by asterisks, as in messages: `**not**`."""

import re
from collections.abc import Iterator

from transept.text.markup import Form, Fragment

_EMPHASIS = re.compile(
    # Code and URLs keep their asterisks. A product such as 2*3*4 has no space around them.
    r"""`[^`\n]*` | \w{1,20}://\S*
    | (?<![\w*])(?P<open>\*{1,3})(?P<text>[^\s*](?:[^*\n]*[^\s*])?)(?P<close>(?P=open))(?![\w*])""",
    re.VERBOSE,
)


def is_emphasized(text: str) -> bool:
    """Whether words of a text are emphasized.

    Example:
        >>> is_emphasized("Do **not** enter."), is_emphasized("2*3*4 **kwargs")
        (True, False)
    """
    return any(found["open"] for found in _EMPHASIS.finditer(text))


def fragments(text: str) -> Iterator[Fragment]:
    """The text, and the asterisks around emphasized words."""
    at = 0
    for number, found in enumerate(_EMPHASIS.finditer(text)):
        if not found["open"]:
            continue
        element = f"#{number}"
        yield Fragment(text[at : found.start()])
        yield Fragment(found["open"], "inline", element)
        yield Fragment(found["text"])
        yield Fragment(found["close"], "inline", element, closes=True)
        at = found.end()
    yield Fragment(text[at:])


PLAIN = Form(fragments, {}, re.compile("(?!)"), str, str)
