"""The vocabulary of a model that another program trained: its sentencepiece model and its ids.

Other programs number the pieces of a sentencepiece model in their own order, put special entries
anywhere, and add entries that the model does not know, such as the `>>de<<` that names the target
language. This vocabulary keeps their sentencepiece model and a table of their entries, with the
special entries moved to where `Tokenizer` has them.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from transept.errors import ConfigError, Problem, VocabularyError
from transept.runtime.storage import make_directory, sealed, write_file
from transept.text.tokenizer import (
    EOS_ID,
    FORMAT,
    MANIFEST_FILE,
    MODEL_FILE,
    PAD_ID,
    UNK_ID,
    Tokenizer,
    reject_surrogates,
    without_special_ids,
)

KIND: Final = "imported"
SPACE_SYMBOL = "▁"
TAG_START, TAG_END = ">>", "<<"
"""OPUS-MT's models for several target languages expect `>>de<<` before the source text."""


class ImportedTokenizer(Tokenizer):
    """Text to ids and back, exactly as the program that trained the model does it.

    Unlike `Tokenizer`, it may lose text: a character that the sentencepiece model does not know
    becomes the unknown entry.
    """

    kind = KIND

    def __init__(
        self,
        model: bytes,
        entries: Sequence[str],
        silent: Iterable[str] = (),
        before_source: Iterable[int] = (),
        after_source: Iterable[int] = (EOS_ID,),
    ) -> None:
        """Combine a sentencepiece model with a table.

        Args:
            model: The bytes of the sentencepiece model. Empty: text is entries with spaces between.
            entries: The entry of each id; the first three are padding, end and unknown.
            silent: Further entries that represent no text, such as a start symbol.
            before_source: Ids that a source sentence begins with.
            after_source: Ids that a source sentence ends with.
        """
        self.entries = tuple(entries)
        self._ids = {entry: index for index, entry in enumerate(self.entries)}
        if len(self._ids) < len(self.entries):
            twice = next(one for index, one in enumerate(entries) if self._ids[one] != index)
            raise VocabularyError(f"the vocabulary has {twice!r} twice; each entry must be unique")
        self.silent = tuple(silent)
        self._silent = {PAD_ID, EOS_ID, *(self._ids[entry] for entry in self.silent)}
        self.before_source, self.after_source = tuple(before_source), tuple(after_source)
        if model:
            super().__init__(model)
        else:
            self._model = model
        self.vocab_size = len(self.entries)

    def __reduce__(self) -> tuple[Any, ...]:
        frame = self.before_source, self.after_source
        return ImportedTokenizer, (self._model, self.entries, self.silent, *frame)

    @classmethod
    def load(cls, directory: Path | str) -> "ImportedTokenizer":
        """Read a directory that `save` wrote, and check that it is as it was written."""
        tokenizer = Tokenizer.load(directory)
        if not isinstance(tokenizer, cls):
            raise VocabularyError(f"{directory}: is not an imported vocabulary")
        return tokenizer

    @classmethod
    def read(cls, model: bytes, manifest: dict[str, Any], path: Path) -> "ImportedTokenizer":
        """Make it from the two files of its directory."""
        try:
            tokenizer = cls(
                model,
                manifest["entries"],
                manifest["silent"],
                manifest["before_source"],
                manifest["after_source"],
            )
        except (KeyError, TypeError) as error:
            raise VocabularyError(
                f"{path}: is damaged ({error}); import the model again"
            ) from error
        if manifest != tokenizer._manifest():
            raise VocabularyError(f"{path}: does not describe the {MODEL_FILE} beside it")
        return tokenizer

    def save(self, directory: Path | str) -> None:
        """Write the two files, each at once or not at all."""
        directory = Path(directory)
        make_directory(directory)
        write_file(directory / MODEL_FILE, self._model)
        write_file(directory / MANIFEST_FILE, sealed(self._manifest()))

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": KIND,
            "vocab_size": self.vocab_size,
            "sha256": hashlib.sha256(self._model).hexdigest(),
            "entries": list(self.entries),
            "silent": list(self.silent),
            "before_source": list(self.before_source),
            "after_source": list(self.after_source),
        }

    @cached_property
    def sha256(self) -> str:
        """Of the sentencepiece model and the table: two with the same one give the same ids."""
        frame = map(str, (*self.before_source, "", *self.after_source))
        table = "\n".join((*self.entries, "", *self.silent, "", *frame))
        return hashlib.sha256(self._model + table.encode()).hexdigest()

    def framed(self, ids: Sequence[int]) -> list[int]:
        """The encoder's input for the ids of a sentence."""
        return [*self.before_source, *ids, *self.after_source]

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The target languages that can be asked for, as in `>>de<<`."""
        found = (one for one in self.entries if one.startswith(TAG_START) and one.endswith(TAG_END))
        return tuple(one.removeprefix(TAG_START).removesuffix(TAG_END) for one in found)

    def target_tag(self, text: str, language: str | None) -> tuple[list[int], str]:
        """The id of the target language's tag, and the text without a tag."""
        if not self.tags:
            return super().target_tag(text, language)
        (*written,), rest = _leading_tag(text)
        tag = f"{TAG_START}{language}{TAG_END}" if language else "".join(written)
        if tag not in self._ids:
            asked = repr(language or tag) if language or tag else "missing"
            what = f"is {asked}; this model has {', '.join(sorted(self.tags))}"
            raise ConfigError([Problem("target_language", what)])
        return [self._ids[tag]], rest if tag in written else text

    def encode(self, text: str) -> list[int]:
        """The ids of a text, which may begin with a tag such as `>>de<<`. No EOS is added."""
        pieces, text = _leading_tag(text)
        try:
            pieces += self._processor.encode(text, out_type=str) if self._model else text.split()
        except (RuntimeError, TypeError, UnicodeError):
            reject_surrogates([text])
            raise
        return [self._ids.get(piece, UNK_ID) for piece in pieces]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as `encode` gives them."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids, without padding, end, unknown and silent entries."""
        special = {*self._silent, UNK_ID}
        pieces = self.pieces_of(without_special_ids(ids, self.vocab_size, special))
        text: str = self._processor.decode_pieces(pieces) if self._model else " ".join(pieces)
        return text.replace(SPACE_SYMBOL, " ").strip()

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """The entries of these ids."""
        return [self.entries[index] for index in ids]

    @cached_property
    def masks(self) -> tuple[str, ...]:
        """None: the model has not learned to copy symbols."""
        return ()

    @cached_property
    def after_word(self) -> frozenset[int]:
        """The ids that may follow a complete word: all, if the entries are words."""
        return super().after_word if self._model else frozenset(range(self.vocab_size))

    def decode_pieces(self, pieces: Iterable[str]) -> str:
        """The text of these pieces."""
        return self.decode(self._ids.get(piece, UNK_ID) for piece in pieces)

    def _surface(self, index: int) -> bytes:
        entry = self.entries[index]
        if index in self._silent or _leading_tag(entry)[0]:
            return b""
        if len(entry) == len("<0x00>") and entry.startswith("<0x"):
            return bytes.fromhex(entry[3:5])
        return entry.replace(SPACE_SYMBOL, " ").encode("utf-8")

    def _check_specials(self) -> None:
        """Nothing: the table has the special entries where they belong."""


def _leading_tag(text: str) -> tuple[list[str], str]:
    end = text.find(TAG_END)
    if not text.startswith(TAG_START) or end < 0:
        return [], text
    return [text[: end + len(TAG_END)]], text[end + len(TAG_END) :]
