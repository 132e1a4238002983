"""The subword vocabulary: text to ids and back without loss, based on sentencepiece.

A tokenizer is a directory with two files: `tokenizer.model`, which sentencepiece reads, and
`tokenizer.json`, which describes it and holds its sha256.
"""

import hashlib
import operator
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from unicodedata import combining

from transept.errors import ConfigError, DataError, Problem, VocabularyError
from transept.runtime.storage import make_directory, sealed, unsealed, write_file
from transept.text.spans import MASKS

PAD_ID, EOS_ID, UNK_ID, BOS_ID = 0, 1, 2, 3
PAD, EOS, UNK, BOS = "<pad>", "</s>", "<unk>", "<s>"

FIRST_LEARNT = 4 + 256
"""The id after the special tokens and the single bytes, in a vocabulary without masks."""

Kind = Literal["bpe", "unigram"]
"""Byte-pair encoding (the paper's English-German), or a unigram language model over subwords, in
place of the word pieces of the paper's English-French."""

MODEL_FILE = "tokenizer.model"
MANIFEST_FILE = "tokenizer.json"
FORMAT = 1
MANY = 32
"""From this many texts on, one batch call of sentencepiece is faster than one call per text. A
batch call starts a thread and waits for it, which takes longer than encoding a sentence."""

_SPECIAL_IDS = frozenset({PAD_ID, EOS_ID, BOS_ID})
_TRAIN = "train one with `transept tokenizer train`"


class Tokenizer:
    """Text to ids and back: `decode(encode(text)) == text` for every Unicode string."""

    pad_id, eos_id, unk_id, bos_id = PAD_ID, EOS_ID, UNK_ID, BOS_ID

    def __init__(self, model: bytes) -> None:
        """Load the bytes of a `tokenizer.model`. Only these are sent to worker processes."""
        # Imported here to keep `--help` fast: the import takes 50 ms.
        from sentencepiece import SentencePieceProcessor

        self._model = model
        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise VocabularyError(f"not a sentencepiece model; {_TRAIN}") from error
        self._check_specials()
        self.vocab_size: int = self._processor.get_piece_size()

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        return Tokenizer, (self._model,)

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, vocab_size={self.vocab_size})"

    @classmethod
    def load(cls, directory: Path | str) -> "Tokenizer":
        """Read a directory that `save` wrote, and verify its checksum."""
        directory = Path(directory)
        manifest = read_manifest(directory / MANIFEST_FILE)
        path = directory / MODEL_FILE
        model = _read(path)
        if hashlib.sha256(model).hexdigest() != manifest.get("sha256"):
            raise VocabularyError(
                f"{path}: its sha256 differs from {MANIFEST_FILE}: one of the two files is damaged "
                f"or belongs to another tokenizer; copy both again, or {_TRAIN}"
            )
        if manifest.get("kind") == "imported":
            from transept.text.imported import ImportedTokenizer

            return ImportedTokenizer.read(model, manifest, directory / MANIFEST_FILE)
        try:
            tokenizer = cls(model)
        except VocabularyError as error:
            raise VocabularyError(f"{path}: {error}") from error
        if manifest != tokenizer._manifest():
            raise VocabularyError(
                f"{directory / MANIFEST_FILE}: does not describe the {MODEL_FILE} next to it; "
                f"copy both again, or {_TRAIN}"
            )
        return tokenizer

    def save(self, directory: Path | str) -> None:
        """Write the two files, each atomically."""
        directory = Path(directory)
        try:
            make_directory(directory)
            write_file(directory / MODEL_FILE, self._model)
            write_file(directory / MANIFEST_FILE, sealed(self._manifest()))
        except OSError as error:
            raise VocabularyError(
                f"{directory}: the tokenizer cannot be written ({error.strerror}); "
                "choose another directory"
            ) from error

    def _manifest(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": self.kind,
            "vocab_size": self.vocab_size,
            "sha256": self.sha256,
        }

    @property
    def model(self) -> bytes:
        """The sentencepiece model."""
        return self._model

    @cached_property
    def sha256(self) -> str:
        """The sha256 of the model. Tokenizers with equal hashes give the same ids."""
        return hashlib.sha256(self._model).hexdigest()

    @cached_property
    def kind(self) -> str:
        """The training algorithm of the vocabulary."""
        # A loaded model does not record it. But BPE scores its subwords by rank, 0, -1, -2 and so
        # on, and a unigram model by log-probability.
        last = self.vocab_size - 1
        first = FIRST_LEARNT + len(self.masks)
        by_rank = self._processor.get_score(last) == -(last - first)
        return "bpe" if by_rank else "unigram"

    @cached_property
    def masks(self) -> tuple[str, ...]:
        """The symbols for protected spans, if the vocabulary has them."""
        known = self._processor.piece_to_id(MASKS[0]) != UNK_ID
        return MASKS if known else ()

    def framed(self, ids: Sequence[int]) -> list[int]:
        """The encoder's input for the ids of a sentence."""
        return [*ids, EOS_ID]

    def target_tag(self, text: str, language: str | None) -> tuple[list[int], str]:
        """The ids that select the target language, and the text without a tag.

        Args:
            text: The text. With an imported model, it may begin with a tag such as `>>de<<`.
            language: The requested target language.
        """
        if language is not None:
            what = f"is {language!r}, and this model has only one target language; omit it"
            raise ConfigError([Problem("target_language", what)])
        return [], text

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. No EOS is added."""
        try:
            ids: list[int] = self._processor.encode(escape(text))
        except (RuntimeError, TypeError, UnicodeError):
            reject_surrogates([text])
            raise
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, as `encode` does."""
        ids: list[list[int]]
        try:
            escaped = [*map(escape, texts)]
            if len(texts) < MANY:
                ids = [self._processor.encode(text) for text in escaped]
            else:
                ids = self._processor.encode(escaped, num_threads=1)
        except (RuntimeError, TypeError, UnicodeError):
            reject_surrogates(texts)
            raise
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of these ids. PAD, EOS and BOS are dropped."""
        text: str = self._processor.decode(without_special_ids(ids, self.vocab_size))
        return unescape(text)

    def pieces(self, text: str) -> list[str]:
        """Return the subwords of a text, as split by `encode`. None contains a space."""
        return self.pieces_of(self.encode(text))

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Return the subwords of these ids, with names for special tokens and single bytes."""
        return [self._processor.id_to_piece(index) for index in ids]

    def surfaces(self, ids: Iterable[int]) -> list[bytes]:
        """Return the UTF-8 bytes that each id adds to an escaped text; none for special ids.

        sentencepiece puts a space before every text, so the first byte is that space.
        """
        return [self._surface(index) for index in ids]

    def _surface(self, index: int) -> bytes:
        if index in _SPECIAL_IDS:
            return b""
        piece: str = self._processor.id_to_piece(index)
        if self._processor.is_byte(index):
            return bytes.fromhex(piece[3:5])
        return piece.replace(SPACE_SYMBOL, " ").encode("utf-8")

    @cached_property
    def after_word(self) -> frozenset[int]:
        """The ids that may follow a complete word: they start a word, or are punctuation."""
        surfaces = enumerate(self.surfaces(range(self.vocab_size)))
        return frozenset(index for index, surface in surfaces if _ends_word(surface))

    def tokens_at(self, surface: bytes, start: int) -> list[tuple[int, int]]:
        """Return the ids whose surface occurs at an offset of a text's, and the end of each."""
        table, longest = self._surface_ids
        ends = range(start + 1, min(start + longest, len(surface)) + 1)
        return [(index, end) for end in ends for index in table.get(surface[start:end], ())]

    @cached_property
    def _surface_ids(self) -> tuple[dict[bytes, list[int]], int]:
        """The ids of each surface, and the length of the longest."""
        table: dict[bytes, list[int]] = {}
        for index in range(self.vocab_size):
            if index != UNK_ID and (surface := self._surface(index)):
                table.setdefault(surface, []).append(index)
        return table, max(map(len, table), default=0)

    def decode_pieces(self, pieces: Iterable[str]) -> str:
        """Return the text of these subwords: the inverse of `pieces`."""
        return self.decode(map(self._id_of, pieces))

    def _id_of(self, piece: str) -> int:
        index: int = self._processor.piece_to_id(piece)
        if index == UNK_ID and piece != UNK:
            raise VocabularyError(
                f"{piece!r} is not in this vocabulary; use the tokenizer that split the text"
            )
        return index

    def _check_specials(self) -> None:
        """Reject models of other programs: they have other special ids, and lose text."""
        processor = self._processor
        specials = processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id()
        byte = processor.piece_to_id("<0x00>")
        if specials != (PAD_ID, EOS_ID, UNK_ID, BOS_ID) or not processor.is_byte(byte):
            raise VocabularyError(
                f"a sentencepiece model, but not made by transept: its pad, eos, unk, bos are "
                f"{specials}, or it has no single-byte tokens; {_TRAIN}"
            )


def _ends_word(surface: bytes) -> bool:
    """Whether a word is complete before this subword."""
    # Single bytes of punctuation that is not ASCII, such as » and …; others may begin a letter.
    if surface in (b"\xc2", b"\xe2"):
        return True
    first = surface.decode("utf-8", "replace")[:1]
    return bool(first) and first != "\ufffd" and not (first.isalnum() or combining(first))


def without_special_ids(
    ids: Iterable[int], vocab_size: int, special: Collection[int] = _SPECIAL_IDS
) -> list[int]:
    """Drop PAD, EOS and BOS. An id outside the vocabulary raises an error."""
    kept = [index for index in map(operator.index, ids) if index not in special]
    if kept and not (min(kept) >= 0 and max(kept) < vocab_size):
        wrong = next(index for index in kept if not 0 <= index < vocab_size)
        raise VocabularyError(
            f"id {wrong} is not in this vocabulary of {vocab_size}; use the vocabulary of the ids"
        )
    return kept


def reject_surrogates(texts: Sequence[str]) -> None:
    """Report the first text that UTF-8 cannot express; sentencepiece does not name it."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"text {number} of {len(texts)} has a lone surrogate "
                f"(U+{ord(text[error.start]):04X}) at character {error.start + 1}, so it is not "
                "Unicode text; decode its bytes as UTF-8 without `surrogateescape`"
            ) from error


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a `tokenizer.json` of either kind."""
    try:
        manifest = unsealed(_read(path))
    except ValueError as error:
        raise VocabularyError(
            f"{path}: is damaged ({error}); copy it again, or {_TRAIN}"
        ) from error
    if manifest.get("format") != FORMAT:
        raise VocabularyError(
            f"{path}: is not a tokenizer of format {FORMAT}, the one this version reads; "
            f"use the version that wrote it, or {_TRAIN}"
        )
    return manifest


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VocabularyError(
            f"{path}: cannot be read ({error.strerror}); give the directory of a tokenizer, "
            f"or {_TRAIN}"
        ) from error


# sentencepiece writes a space as `▁` (U+2581) and reads every `▁` as a space, so a `▁` in the text
# would be decoded as a space. It is replaced by a private-use character before encoding. If the
# text contains that character itself, it is escaped by another:
#
#     ▁  ->  MARK            MARK  ->  ESCAPE MARK            ESCAPE  ->  ESCAPE ESCAPE
#
# All other losses are prevented by the way the vocabulary is trained (`training`).
SPACE_SYMBOL = "▁"
MARK = "\U000f2581"
ESCAPE = "\U000f2580"

_PLAIN = re.compile(f"[{SPACE_SYMBOL}{MARK}{ESCAPE}]")
_ESCAPED = re.compile(f"{ESCAPE}([{MARK}{ESCAPE}])|{MARK}")


def escape(text: str) -> str:
    """Replace every `▁` of a text, reversibly by `unescape`."""
    # Almost no text contains one of these. The three tests cost little compared with encoding.
    if SPACE_SYMBOL in text or MARK in text or ESCAPE in text:
        return _PLAIN.sub(lambda found: _escaped(found[0]), text)
    return text


def unescape(text: str) -> str:
    """Invert `escape`. An ESCAPE that escapes nothing (a model may produce one) stays."""
    if MARK in text or ESCAPE in text:
        return _ESCAPED.sub(lambda found: found[1] or SPACE_SYMBOL, text)
    return text


def _escaped(character: str) -> str:
    return MARK if character == SPACE_SYMBOL else ESCAPE + character
