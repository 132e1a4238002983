"""What counts and what is left out, as evalb's parameter files (.prm) say it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from transept.config import did_you_mean
from transept.errors import DataError
from transept.text.files import describe, read_text

Pairs = frozenset[tuple[str, str]]
Bracketing = Literal["labelled", "unlabelled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """evalb's parameters. The defaults are its own: what it does without a parameter file."""

    name: str = "none"
    """For people: what to call these parameters beside a score."""
    bracketing: Bracketing = "labelled"
    """Whether a bracket must have the right label, or only the right words."""
    deleted: frozenset[str] = frozenset()
    """A word with such a tag is left out; so is a bracket with such a label, but not its words."""
    deleted_for_length: frozenset[str] = frozenset()
    """A word with such a tag does not make its sentence longer."""
    quotes: frozenset[str] = frozenset()
    """Tags by which the same quotation mark may be deleted on one side and not on the other."""
    equal_labels: Pairs = frozenset()
    """Pairs of labels, or of tags, that count as equal."""
    equal_words: Pairs = frozenset()
    """Pairs of words that count as equal."""
    cutoff: int = 40
    """Sentences up to this length are also scored by themselves."""
    max_errors: int = 10
    """evalb gives up, without a result, at the second error beyond these."""

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels count as one. This need not be transitive."""
        pairs = self.equal_labels
        return one == other or (one, other) in pairs or (other, one) in pairs

    def deletes_bracket(self, label: str) -> bool:
        """Whether a bracket with this label, or one that is equal to it, is left out."""
        return label in self.deleted or any(
            (one == label and other in self.deleted) or (other == label and one in self.deleted)
            for one, other in self.equal_labels
        )

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as one."""
        pairs = self.equal_words
        return one == other or (one, other) in pairs or (other, one) in pairs

    @property
    def signature(self) -> str:
        """Everything that a score depends on."""
        return "|".join(
            (
                f"params:{self.name}",
                f"bracketing:{self.bracketing}",
                f"delete:{' '.join(sorted(self.deleted))}",
                f"length:{' '.join(sorted(self.deleted_for_length))}",
                f"quotes:{' '.join(sorted(self.quotes))}",
                f"labels:{_show(self.equal_labels)}",
                f"words:{_show(self.equal_words)}",
            )
        )


COLLINS: Final = Parameters(
    name="COLLINS",
    deleted=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    deleted_for_length=frozenset({"-NONE-"}),
    equal_labels=frozenset({("ADVP", "PRT")}),
)
"""What COLLINS.prm says: the parameters of nearly every published score, and the paper's."""


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file. What evalb would silently ignore is an error here."""
    found: dict[str, Any] = {"name": path.name.removesuffix(".prm")}
    for number, line in enumerate(read_text(path), start=1):
        if line.startswith("#") or len(line.rstrip()) < 3:  # evalb skips such short lines, too
            continue
        keyword, *values = line.split()
        try:
            if keyword == "DEBUG":
                continue
            field, read, _ = _KEYWORDS[keyword]
            value = read(*values)
        except KeyError:
            problem = f"unknown keyword {keyword!r}; {did_you_mean(keyword, _KEYWORDS)}"
        except (TypeError, ValueError):
            problem = f"{keyword} needs {_KEYWORDS[keyword][2]}, and has {' '.join(values)!r}"
        else:
            earlier = found.get(field)
            found[field] = earlier | value if isinstance(earlier, frozenset) else value
            continue
        raise DataError(f"{describe(path)}, line {number}: {problem}")
    return Parameters(**found)


def _show(pairs: Pairs) -> str:
    return " ".join(sorted("=".join(pair) for pair in pairs))


def _label(label: str) -> frozenset[str]:
    return frozenset({label})


def _pair(one: str, other: str) -> Pairs:
    return frozenset({(one, other)})


def _bracketing(number: str) -> Bracketing:
    return "labelled" if int(number) else "unlabelled"


_KEYWORDS: Final[dict[str, tuple[str, Callable[..., Any], str]]] = {
    "LABELED": ("bracketing", _bracketing, "0 or 1"),
    "DELETE_LABEL": ("deleted", _label, "one label"),
    "DELETE_LABEL_FOR_LENGTH": ("deleted_for_length", _label, "one label"),
    "QUOTE_LABEL": ("quotes", _label, "one label"),
    "EQ_LABEL": ("equal_labels", _pair, "two labels"),
    "EQ_WORD": ("equal_words", _pair, "two words"),
    "CUTOFF_LEN": ("cutoff", int, "a number"),
    "MAX_ERROR": ("max_errors", int, "a number"),
}
