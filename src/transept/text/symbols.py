"""A vocabulary of whole symbols, for data that is not text: linearised trees.

It has the interface and the special ids of a `Tokenizer`, but is not trained and does not split
text into subwords. A line consists of symbols separated by spaces, and each symbol is one id. Its
directory holds one file, `tokenizer.json`, with another `kind`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from transept.errors import VocabularyError
from transept.runtime.storage import make_directory, sealed, write_file
from transept.text.tokenizer import (
    BOS,
    BOS_ID,
    EOS,
    EOS_ID,
    FORMAT,
    MANIFEST_FILE,
    PAD,
    PAD_ID,
    UNK,
    UNK_ID,
    Tokenizer,
    read_manifest,
    without_special_ids,
)

KIND: Final = "symbols"
FIRST_SYMBOL = 4
"""The id after the special entries."""

# As in trees, only ASCII white space ends a symbol.
_SYMBOL = re.compile(r"\S+", re.ASCII)
_SPECIAL = (PAD, EOS, UNK, BOS)


class Symbols:
    """Lines of symbols to ids and back: `decode(encode(line)) == line` if all symbols are known.

    Example:
        >>> vocabulary = Symbols(["(S", ")S", "XX"])
        >>> vocabulary.encode("(S XX XX )S")
        [4, 6, 6, 5]
    """

    pad_id, eos_id, unk_id, bos_id = PAD_ID, EOS_ID, UNK_ID, BOS_ID
    kind: Final = KIND

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = tuple(symbols)
        self._entries = _SPECIAL + self.symbols
        self._ids = {entry: index for index, entry in enumerate(self._entries)}
        self.vocab_size = len(self._entries)
        wrong = [symbol for symbol in self.symbols if not _SYMBOL.fullmatch(symbol)]
        if wrong or len(self._ids) < self.vocab_size:
            what = f"{wrong[0]!r} is empty or has a space" if wrong else "an entry occurs twice"
            raise VocabularyError(f"not a vocabulary of symbols: {what}")

    def __reduce__(self) -> tuple[type["Symbols"], tuple[tuple[str, ...]]]:
        return Symbols, (self.symbols,)

    def __repr__(self) -> str:
        return f"Symbols(vocab_size={self.vocab_size})"

    @classmethod
    def load(cls, directory: Path | str) -> "Symbols":
        """Read a directory that `save` wrote, and verify its checksum."""
        path = Path(directory) / MANIFEST_FILE
        manifest = read_manifest(path)
        symbols: Any = manifest.get("symbols")
        if manifest.get("kind") != KIND or not _are_strings(symbols):
            raise VocabularyError(
                f"{path}: is not a vocabulary of symbols; give the directory of one"
            )
        vocabulary = cls(symbols)
        if manifest != vocabulary._manifest():
            raise VocabularyError(
                f"{path}: is damaged (sha256 or size does not match its symbols); copy it again"
            )
        return vocabulary

    def save(self, directory: Path | str) -> None:
        """Write the file atomically."""
        path = Path(directory) / MANIFEST_FILE
        try:
            make_directory(path.parent)
            write_file(path, sealed(self._manifest()))
        except OSError as error:
            raise VocabularyError(
                f"{path.parent}: the vocabulary cannot be written ({error.strerror}); "
                "choose another directory"
            ) from error

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": KIND,
            "vocab_size": self.vocab_size,
            "sha256": self.sha256,
            "symbols": list(self.symbols),
        }

    @cached_property
    def sha256(self) -> str:
        """The sha256 of the symbols. Vocabularies with equal hashes give the same ids."""
        return hashlib.sha256("\n".join(self.symbols).encode()).hexdigest()

    @property
    def ids(self) -> Mapping[str, int]:
        """The id of each entry."""
        return self._ids

    def encode(self, text: str) -> list[int]:
        """Return the ids of a line. Unknown symbols become UNK. No EOS is added."""
        return [self._ids.get(symbol, UNK_ID) for symbol in text.split(" ") if symbol]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each line."""
        return list(map(self.encode, texts))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the line of these ids. PAD, EOS and BOS are dropped."""
        return " ".join(self.symbols_of(ids))

    def symbols_of(self, ids: Iterable[int]) -> list[str]:
        """Return the symbols of these ids. PAD, EOS and BOS are dropped."""
        return [self._entries[index] for index in without_special_ids(ids, self.vocab_size)]


Vocabulary = Tokenizer | Symbols
"""Turns one side of a corpus into ids. Both kinds have the same special ids."""


def load_vocabulary(directory: Path | str) -> Vocabulary:
    """Load a vocabulary of either kind."""
    manifest = read_manifest(Path(directory) / MANIFEST_FILE)
    return (Symbols if manifest.get("kind") == KIND else Tokenizer).load(directory)


def _are_strings(symbols: Any) -> bool:
    return isinstance(symbols, list) and all(isinstance(symbol, str) for symbol in symbols)
