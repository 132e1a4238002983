"""Reads translation memories (TMX) as a stream, one unit at a time.

The parser is expat, restricted against hostile files. Entities cannot be declared, so none can
expand. An external DTD may be named, as in old TMX files, but is never opened. The size of a unit
or a tag in memory is limited.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from transept.errors import DataError

UNIT_LIMIT = 1 << 20
"""Maximum characters per segment."""
TAG_LIMIT = 1 << 24
"""Maximum bytes that the parser may buffer for an unfinished tag."""

# Elements that contain formatting codes of other programs, not text (TMX 1.4b, section 3.3).
CODES = frozenset({"bpt", "ept", "it", "ph", "ut", "sub"})


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A translation unit: its first line number and its text in the two languages."""

    line: int
    source: str
    target: str


def read_units(
    blocks: Iterable[bytes], languages: tuple[str, str], name: str
) -> Iterator[TranslationUnit]:
    """Yield each unit of a TMX file in order. A missing side is an empty string.

    Args:
        blocks: The file's bytes, in blocks of any size.
        languages: Codes of source and target; `en` also matches `en-GB`.
        name: The file's name in messages.
    """
    reader = _Reader(languages, name)
    for block in blocks:
        yield from reader.feed(block)
    yield from reader.close()


@dataclass(slots=True)
class _OpenUnit:
    """The unit being read."""

    line: int
    texts: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Handlers for expat that collect units."""

    def __init__(self, languages: tuple[str, str], name: str) -> None:
        self._languages = languages
        self._name = name
        self._units: list[TranslationUnit] = []
        self._unit: _OpenUnit | None = None
        self._language: str | None = None
        self._pieces: list[str] | None = None
        self._size = 0
        self._code_depth = 0
        self._n_bytes = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped
        self._parser = parser

    def feed(self, block: bytes) -> list[TranslationUnit]:
        """Return the units that end in this block."""
        self._parse(block, final=False)
        self._n_bytes += len(block)
        if self._n_bytes - max(self._parser.CurrentByteIndex, 0) > TAG_LIMIT:
            raise self._error(f"has a tag of more than {TAG_LIMIT >> 20} MiB")
        return self._pop_units()

    def close(self) -> list[TranslationUnit]:
        """Return the remaining units at the end of the file."""
        self._parse(b"", final=True)
        return self._pop_units()

    def _pop_units(self) -> list[TranslationUnit]:
        units, self._units = self._units, []
        return units

    def _parse(self, block: bytes, final: bool) -> None:
        try:
            self._parser.Parse(block, final)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            raise DataError(
                f"{self._name}, line {error.lineno}: not well-formed XML ({message}); "
                "repair the file or export it again"
            ) from error

    def _error(self, what: str) -> DataError:
        line = self._parser.CurrentLineNumber
        return DataError(f"{self._name}, line {line}: {what}, which is not supported")

    # --- expat callbacks ---

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._unit = _OpenUnit(self._parser.CurrentLineNumber)
        elif tag == "tuv":
            code = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = self._match(code)
        elif tag == "seg":
            self._pieces, self._size = [], 0
        elif tag in CODES and self._pieces is not None:
            self._code_depth += 1

    def _end(self, tag: str) -> None:
        if tag in CODES and self._code_depth:
            self._code_depth -= 1
        elif tag == "seg" and self._pieces is not None:
            if self._unit is not None and self._language is not None:
                text = " ".join("".join(self._pieces).split())
                self._unit.texts.setdefault(self._language, text)
            self._pieces, self._code_depth = None, 0
        elif tag == "tuv":
            self._language = None
        elif tag == "tu" and self._unit is not None:
            source, target = (self._unit.texts.get(code, "") for code in self._languages)
            self._units.append(TranslationUnit(self._unit.line, source, target))
            self._unit = None

    def _text(self, text: str) -> None:
        if self._pieces is None or self._code_depth or self._language is None:
            return
        self._size += len(text)
        if self._size > UNIT_LIMIT:
            raise self._error(f"has a segment of more than {UNIT_LIMIT:,} characters")
        self._pieces.append(text)

    def _match(self, code: str) -> str | None:
        """Return which of the two languages an xml:lang such as `en-GB` matches."""
        code = code.lower().replace("_", "-")
        for language in self._languages:
            wanted = language.lower().replace("_", "-")
            if code == wanted or code.startswith(wanted + "-"):
                return language
        return None

    def _doctype(
        self, name: str, system_id: str | None, public_id: str | None, has_subset: bool
    ) -> None:
        if has_subset:
            raise self._error("has an internal DTD")

    def _entity(self, *declaration: object) -> None:
        raise self._error("declares an entity")

    def _skipped(self, name: str, is_parameter_entity: bool) -> None:
        raise self._error(f"uses the undeclared entity {name!r}")
