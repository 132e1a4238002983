"""The formats of files, by their names."""

import html
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Literal, NamedTuple, get_args

from transept.documents.archive import ZippedFile, check_size
from transept.documents.catalogs import Catalog
from transept.documents.dialects import (
    CONTENTS,
    OFFICE,
    OPEN_DOCUMENT,
    XLIFF,
    with_target_language,
)
from transept.documents.elements import Dialect, XmlDocument
from transept.documents.subtitles import Subtitles
from transept.errors import DataError
from transept.text.files import decode_line

FileFormat = Literal[
    "text", "html", "markdown", "srt", "vtt", "docx", "odt", "pptx", "odp", "xlsx", "epub", "po",
    "xliff",
]  # fmt: skip
"""The formats of files to translate."""
SUFFIXES: dict[str, FileFormat] = {
    ".txt": "text",
    ".htm": "html",
    ".html": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".pot": "po",
    ".xlf": "xliff",
    **{f".{name}": name for name in get_args(FileFormat)[3:]},
}
MOST_XML = 32_000_000
"""The maximum size of the text and markup of a document."""

MOST_TEXTS = 100_000
"""The maximum number of subtitles or messages of a file."""


class OpenedFile(NamedTuple):
    """The texts of a file, and how to write the file with their translations."""

    texts: list[str]
    markup: Literal["text", "html", "markdown"]
    """The format of the texts."""
    written: Callable[[Sequence[str]], bytes]
    """The file with a translation of each text."""
    labelled: Callable[[bytes, str], bytes] = lambda data, _: data
    """A file of this format with its target language, if the format has a field for it."""

    def translated(self, texts: Sequence[str], language: str) -> bytes:
        """The file with a translation of each text into a language. Empty if it is unknown."""
        data = self.written(texts)
        return self.labelled(data, language) if texts and language else data


def format_of_name(name: str) -> FileFormat:
    """The format of a file by the suffix of its name."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{name}: files of the format {suffix or 'without a suffix'!r} cannot be translated; "
            f"the formats are {', '.join(SUFFIXES)}"
        )
    return SUFFIXES[suffix]


def open_file(data: bytes, name: str, format: FileFormat | None = None) -> OpenedFile:
    """Find the texts of a file.

    Args:
        data: The content of the file.
        name: Its name, also for messages.
        format: Its format. Default: by the suffix of the name.
    """
    format = format or format_of_name(name)
    check_size(data, name)
    if format in _ZIPPED:
        return _open_zipped(data, name, _ZIPPED[format])
    if format == "xliff":
        _check_text(len(data), name)
        document = XmlDocument(data, name, XLIFF)
        return OpenedFile(document.texts, "html", document.translated, _labelled)
    text = _decoded(data, name)
    if format == "srt" or format == "vtt" or format == "po":
        _check_count(text.count("msgstr" if format == "po" else "-->"), name)
        cues = Catalog(text) if format == "po" else Subtitles(text, format)
        return OpenedFile(cues.texts, "html", lambda texts: cues.translated(texts).encode())
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    markup: Literal["text", "html", "markdown"] = format  # type: ignore[assignment]
    texts = [text.removeprefix(mark)] if text else []
    return OpenedFile(texts, markup, lambda texts: (mark + "".join(texts)).encode())


def _labelled(data: bytes, language: str) -> bytes:
    return with_target_language(data.decode(), language).encode()


def _decoded(data: bytes, name: str) -> str:
    _check_text(len(data), name)
    lines = enumerate(data.split(b"\n"), start=1)
    text = "\n".join(decode_line(line, Path(name), number) for number, line in lines)
    if "\0" in text:
        raise DataError(f"{name}: has a NUL byte, so it is not text; give a file of UTF-8 text")
    return text


def _check_text(size: int, name: str) -> None:
    if size > MOST_XML:
        raise DataError(
            f"{name}: has {size:,} bytes of text and markup, more than {MOST_XML:,}; split the "
            "document into smaller ones"
        )


def _check_count(n_texts: int, name: str) -> None:
    if n_texts > MOST_TEXTS:
        raise DataError(
            f"{name}: has {n_texts:,} texts, more than {MOST_TEXTS:,}; split the document into "
            "smaller ones"
        )


# --- zip files -------------------------------------------------------------------------------


class _Zipped(NamedTuple):
    """A format of zip files."""

    members: re.Pattern[str]
    """The names of the members with text."""
    dialect: Dialect


def _members(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ZIPPED = {
    "docx": _Zipped(
        _members(
            r"word/(?:(?:document|header|footer|footnotes|endnotes)\d*|(?:charts|diagrams)/[^/]+)\.xml"
        ),
        OFFICE,
    ),
    "pptx": _Zipped(_members(r"ppt/(?:slides|notesSlides|charts|diagrams)/[^/]+\.xml"), OFFICE),
    "xlsx": _Zipped(
        _members(r"xl/(?:sharedStrings|(?:worksheets|drawings|charts)/[^/]+)\.xml"), OFFICE
    ),
    "odt": _Zipped(_members(r"(?:content|styles)\.xml"), OPEN_DOCUMENT),
    "odp": _Zipped(_members(r"(?:content|styles)\.xml"), OPEN_DOCUMENT),
    # macOS adds files with the same suffixes, which are not text.
    "epub": _Zipped(_members(r"(?!__MACOSX/).+\.(?:x?html?|ncx)"), CONTENTS),
}
_COLUMN = re.compile(rb'<(?:\w+:)?tableColumn\s[^>]*?\bname="([^"]*)"')
_ENCRYPTED_CHAPTER = re.compile(rb"""URI=["'][^"']*\.(?:x?html?|ncx)["']""", re.IGNORECASE)


def _open_zipped(data: bytes, name: str, format: _Zipped) -> OpenedFile:
    archive = ZippedFile(data, name)
    _reject_encrypted(archive)
    members = [member for member in archive.names if format.members.fullmatch(member)]
    if not members:
        raise DataError(
            f"{name}: contains no text of this format; check that its name has the right suffix"
        )
    _check_text(sum(map(archive.size, members)), name)
    kept = _column_names(archive)
    opened = {member: _open_member(archive, member, name, format, kept) for member in members}
    texts = [text for one in opened.values() for text in one.texts]

    def written(translations: Sequence[str]) -> bytes:
        each = iter(translations)
        return archive.replaced(
            {
                member: one.written([next(each) for _ in one.texts])
                for member, one in opened.items()
                if one.texts
            }
        )

    return OpenedFile(texts, "html", written)


def _open_member(
    archive: ZippedFile, member: str, name: str, format: _Zipped, kept: set[str]
) -> OpenedFile:
    data, place = archive.read(member), f"{name}, {member}"
    if format.dialect is CONTENTS and not member.lower().endswith(".ncx"):
        return open_file(data, place, "html")
    if member.lower().startswith("xl/worksheets/") and b"inlineStr" not in data:
        return OpenedFile([], "html", lambda texts: data)  # its texts are shared strings
    document = XmlDocument(data, place, format.dialect, kept)
    return OpenedFile(document.texts, "html", document.translated)


def _reject_encrypted(archive: ZippedFile) -> None:
    """Reject a document of OpenDocument with a password, and an EPUB with DRM."""
    for member, sign in (
        ("META-INF/manifest.xml", re.compile(rb"encryption-data")),
        ("META-INF/encryption.xml", _ENCRYPTED_CHAPTER),
    ):
        if member in archive.names and sign.search(archive.read(member)):
            raise archive.encrypted()


def _column_names(archive: ZippedFile) -> set[str]:
    """The column names of Excel tables. Formulas and the header cells must have the same ones."""
    tables = (member for member in archive.names if re.match(r"xl/tables/", member))
    names = (name for table in tables for name in _COLUMN.findall(archive.read(table)))
    return {html.unescape(name.decode(errors="replace")) for name in names}
