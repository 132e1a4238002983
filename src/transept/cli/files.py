"""Translate files of other formats than text: `transept translate --input report.docx`."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, get_args

from transept.api.config import Format
from transept.api.files import check_output, read_file, write_translations
from transept.cli.lines import Line
from transept.cli.outlets import ProgressBar
from transept.documents.opening import FileFormat
from transept.errors import ConfigError
from transept.runtime.interrupt import import_torch
from transept.text.files import STANDARD_INPUT, describe

if TYPE_CHECKING:
    from transept.cli.translate import Notes, TranslationJob


def is_text(format: FileFormat) -> TypeGuard[Format]:
    """Whether files of this format are read as text, with or without markup."""
    return format in get_args(Format)


def translate_file(
    job: "TranslationJob",
    notes: "Notes",
    sources: tuple[Sequence[str], Sequence[Path]],
    output: Path | None,
    format: FileFormat,
) -> None:
    """Translate a file as a whole. Equal paragraphs are translated once."""
    file = _only_file(*sources, format)
    if output is not None:
        check_output(file, output)
    elif sys.stdout.isatty():
        raise ConfigError(f"a file of the format {format} cannot be printed: give --output FILE")
    opened = read_file(file, format)
    places = {text: f"{describe(file)}, paragraph {n}" for n, text in enumerate(opened.texts, 1)}
    lines = [Line(text, place) for text, place in places.items()]
    import_torch()
    transducer = job.models.load(len(lines))
    with ProgressBar("paragraphs", len(lines), results_to_stdout=output is None) as bar:
        watch = partial(bar.share, len(lines))
        translated = job.translate(transducer, lines, 0, notes, watch)
        found = dict(zip(places, translated, strict=True))
    texts = [found[text] for text in opened.texts]
    language = job.wanted["target_language"] or transducer.languages[1]
    if output is not None:
        write_translations(opened, texts, output, language)
    else:
        sys.stdout.buffer.write(opened.translated(texts, language))
        sys.stdout.buffer.flush()
    notes.warn()


def _only_file(texts: Sequence[str], files: Sequence[Path], format: FileFormat) -> Path:
    if texts or len(files) > 1:
        raise ConfigError(f"files of the format {format} are translated one by one: give --input")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(f"one process translates a file of the format {format}: omit torchrun")
    return files[0] if files else STANDARD_INPUT
