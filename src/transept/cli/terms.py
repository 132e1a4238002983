"""The options `--glossary` and `--keep`, and warnings about terms that are missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import complain
from transept.text.glossary import Glossary


@dataclass(frozen=True, kw_only=True)
class TermOptions:
    """Required translations."""

    glossary: Path | None = None
    """A UTF-8 file of required translations: on each line a term, a tab and its translation, or a
    word that is kept. Lines that begin with # are ignored. Sentences with a term need the native
    engine and take longer."""
    keep: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """A word or name that is not translated. May be repeated."""

    def terms(self) -> Glossary | None:
        """The glossary, or None if neither option is given."""
        if self.glossary is None and not self.keep:
            return None
        return Glossary.of(self.glossary, self.keep)


def warn_of_missing(place: str, terms: Sequence[str]) -> None:
    """Warn about a translation that lacks required terms."""
    if terms:
        complain(f"warning: {place}: the translation lacks {', '.join(map(repr, terms))}")
