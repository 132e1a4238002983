"""Small documents, written by hand."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence

from transept.documents.opening import OpenedFile, open_file

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
X = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
TEXT = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
OFFICE = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
DECLARED = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def zipped(members: Mapping[str, str | bytes], stored: Sequence[str] = ("mimetype",)) -> bytes:
    """A zip file. All members but the stored ones are compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6))
            info.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            file.writestr(info, content)
    return buffer.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def word(body: str, **more: str) -> bytes:
    """A docx file with this body."""
    document = f"{DECLARED}<w:document {W}><w:body>{body}<w:sectPr/></w:body></w:document>"
    members = {"[Content_Types].xml": "<Types/>", "word/document.xml": document}
    return zipped(members | {f"word/{name}.xml": text for name, text in more.items()})


def slide(body: str) -> bytes:
    """A pptx file with one slide."""
    return zipped({"ppt/slides/slide1.xml": f"{DECLARED}<p:sld {A} xmlns:p='p'>{body}</p:sld>"})


def writer(body: str) -> bytes:
    """An odt file with this body."""
    content = f"{DECLARED}<office:document-content {OFFICE} {TEXT}>{body}</office:document-content>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def changed(data: bytes, name: str, translate: Callable[[str], str]) -> tuple[OpenedFile, bytes]:
    """An opened file, and the file in which a function has translated each text."""
    opened = open_file(data, name)
    return opened, opened.written([translate(text) for text in opened.texts])


def body_of(data: bytes, member: str, start: str, end: str) -> str:
    """The part of a member between two markers."""
    return unzipped(data)[member].decode().partition(start)[2].rpartition(end)[0]
