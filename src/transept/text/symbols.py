"""A vocabulary whose entries are whole symbols, for a side that is no text: linearised trees.

It does what a `Tokenizer` does and numbers its special entries alike, but nothing is cut and
nothing is learnt: a line is symbols with spaces between them, and each is one id. Its directory
holds one file, `tokenizer.json`, of another kind.
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
    spoken,
)

KIND: Final = "symbols"
FIRST_SYMBOL = 4
"""The id after the special entries."""

# As in trees, only ASCII's spaces end a symbol.
_SYMBOL = re.compile(r"\S+", re.ASCII)
_SPECIAL = (PAD, EOS, UNK, BOS)


class Symbols:
    """Lines of symbols to ids and back: `decode(encode(line)) == line` if it knows all of them.

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
            what = f"{wrong[0]!r} is empty or holds a space" if wrong else "an entry comes twice"
            raise VocabularyError(f"not a vocabulary of symbols: {what}")

    def __reduce__(self) -> tuple[type["Symbols"], tuple[tuple[str, ...]]]:
        return Symbols, (self.symbols,)

    def __repr__(self) -> str:
        return f"Symbols(vocab_size={self.vocab_size})"

    @classmethod
    def load(cls, directory: Path | str) -> "Symbols":
        """Read a directory that `save` wrote, and check that it is as it was written."""
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
                f"{path}: its sha256 or its size is not that of its symbols: it is damaged; "
                "copy it again"
            )
        return vocabulary

    def save(self, directory: Path | str) -> None:
        """Write the file, at once or not at all."""
        path = Path(directory) / MANIFEST_FILE
        try:
            make_directory(path.parent)
            write_file(path, sealed(self._manifest()))
        except OSError as error:
            raise VocabularyError(
                f"{path.parent}: the vocabulary cannot be written there ({error.strerror}); "
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
        """Of the symbols: two vocabularies with the same one give the same ids."""
        return hashlib.sha256("\n".join(self.symbols).encode()).hexdigest()

    @property
    def ids(self) -> Mapping[str, int]:
        """The id of each entry."""
        return self._ids

    def encode(self, text: str) -> list[int]:
        """The ids of a line; what is no symbol of this vocabulary is UNK. No EOS is added."""
        return [self._ids.get(symbol, UNK_ID) for symbol in text.split(" ") if symbol]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each line."""
        return list(map(self.encode, texts))

    def decode(self, ids: Iterable[int]) -> str:
        """The line of these ids; PAD, EOS and BOS are dropped."""
        return " ".join(self.symbols_of(ids))

    def symbols_of(self, ids: Iterable[int]) -> list[str]:
        """The symbols of these ids, as `decode` writes them."""
        return [self._entries[index] for index in spoken(ids, self.vocab_size)]


Vocabulary = Tokenizer | Symbols
"""What turns a side of a corpus into ids. Both kinds number their special entries alike."""


def load_vocabulary(directory: Path | str) -> Vocabulary:
    """The vocabulary of a directory, of whichever kind."""
    manifest = read_manifest(Path(directory) / MANIFEST_FILE)
    return (Symbols if manifest.get("kind") == KIND else Tokenizer).load(directory)


def _are_strings(symbols: Any) -> bool:
    return isinstance(symbols, list) and all(isinstance(symbol, str) for symbol in symbols)
