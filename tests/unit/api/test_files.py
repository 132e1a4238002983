"""Translation of files, from one path to another."""

import gzip
import re
from pathlib import Path

import pytest
from tests.unit.documents.builders import unzipped, word

from transept import Transducer
from transept.api.config import Format
from transept.errors import ConfigError, DataError


def runs(*texts: str) -> str:
    return "".join(
        f"<w:r><w:rPr><w:{tag}/></w:rPr><w:t>{text}</w:t></w:r>"
        for tag, text in zip("bi", texts, strict=False)
    )


BODY = (
    f"<w:p>{runs('One two. ', 'three')}</w:p><w:p>{runs('Four.')}</w:p><w:p>{runs('Four.')}</w:p>"
)


def test_paragraphs_of_a_file_are_translated_as_html(
    transducer: Transducer, tmp_path: Path
) -> None:
    source, output = tmp_path / "a.docx", tmp_path / "b.docx"
    source.write_bytes(word(BODY))
    seen: list[tuple[int, int | None]] = []
    found = transducer.translate_file(source, output, raw=True, watch=lambda *n: seen.append(n))
    texts = ['One two. <span id="0">three</span>', "Four.", "Four."]
    each = [transducer.translate(text, format="html", raw=True).text for text in texts]
    assert [one.text for one in found] == each
    written = unzipped(output.read_bytes())["word/document.xml"].decode()
    words = re.sub("<[^>]*>", " ", written).split()
    expected = re.sub("<[^>]*>", " ", " ".join(one.text for one in found)).split()
    assert words == expected
    assert seen[-1] == (2, 2), "equal paragraphs are translated once"


@pytest.mark.parametrize(("name", "format"), [("a.md", "markdown"), ("a.txt", "text")])
def test_text_files_are_translated_as_texts_are(
    transducer: Transducer, tmp_path: Path, name: str, format: Format
) -> None:
    text = "# One *two*\n\nThree four.\n"
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    transducer.translate_file(tmp_path / f"{name}.gz", tmp_path / "b", format, raw=True)
    expected = transducer.translate(text, format=format, raw=True).text
    assert (tmp_path / "b").read_text() == expected


def test_source_is_not_overwritten(transducer: Transducer, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one")
    (tmp_path / "b.txt").symlink_to(path)
    for output in (path, tmp_path / "b.txt"):
        with pytest.raises(ConfigError, match="is the input; choose another `output`"):
            transducer.translate_file(path, output)
    with pytest.raises(DataError, match="its directory does not exist"):
        transducer.translate_file(path, tmp_path / "no" / "b.txt")
    assert path.read_text() == "one"


def test_options_of_texts_are_rejected(transducer: Transducer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="n_best: is not supported for files"):
        transducer.translate_file(tmp_path / "a.txt", tmp_path / "b.txt", n_best=2)
    with pytest.raises(DataError, match="cannot be read"):
        transducer.translate_file(tmp_path / "a.txt", tmp_path / "b.txt")
