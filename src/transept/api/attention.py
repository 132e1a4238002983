"""The attention weights of a sentence pair, by layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import torch

from transept.api.texts import Writer, as_texts
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.errors import DataError
from transept.model.attention import record_attention
from transept.model.transformer import Transformer
from transept.progress import no_progress
from transept.shapes import Float, Tensor
from transept.text.tokenizer import BOS, EOS_ID, Tokenizer, unescape

if TYPE_CHECKING:
    from transept.api.transducer import Transducer

Kind = Literal["encoder", "decoder", "source"]
"""Encoder self-attention, decoder self-attention, encoder-decoder attention."""
KINDS: tuple[Kind, ...] = get_args(Kind)

_NAMES: dict[Kind, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "source": "decoder.layers.{}.source_attention",
}


@dataclass(frozen=True, slots=True)
class Side:
    """The tokens that attend, or that are attended to."""

    pieces: tuple[str, ...]
    """Subwords as in the vocabulary; `▁` is a space."""
    words: tuple[str, ...]
    """The words that the subwords form: words, punctuation around words, special symbols."""
    word_of: tuple[int, ...]
    """The word index of each subword, from 0, in non-decreasing order."""

    def joined(self) -> "Side":
        """The same side with one token per word."""
        return Side(self.words, self.words, tuple(range(len(self.words))))

    def after(self, start: str) -> "Side":
        """The decoder's input: a start symbol, then all tokens except the last."""
        pieces, word_of = self.pieces[:-1], self.word_of[:-1]
        n_words = word_of[-1] + 1 if word_of else 0
        return Side(
            (start, *pieces),
            (start, *self.words[:n_words]),
            (0, *(word + 1 for word in word_of)),
        )


@dataclass(frozen=True, slots=True)
class AttentionMap:
    """One kind of attention in all layers and heads."""

    queries: Side
    keys: Side
    weights: Float[Tensor, "Y H T S"]
    """The attention of each query to each key. The weights of a query sum to 1."""

    def joined(self) -> "AttentionMap":
        """Attention between words instead of subwords.

        Attention *to* a word is summed over its subwords. Attention *from* a word is averaged over
        them, so its weights still sum to 1.
        """
        given = self.weights @ _membership(self.keys)
        members = _membership(self.queries)
        means = members / members.sum(dim=0, keepdim=True)
        return AttentionMap(self.queries.joined(), self.keys.joined(), means.T @ given)

    def described(self) -> dict[str, Any]:
        """The map as JSON-serializable values, weights rounded to six decimals."""
        return {
            "queries": _described(self.queries),
            "keys": _described(self.keys),
            "weights": _rounded(self.weights.tolist()),
        }


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention weights of a network for a sentence and its translation."""

    source: str
    target: str
    encoder: AttentionMap
    """Source tokens attend to source tokens."""
    decoder: AttentionMap
    """Decoder steps attend to a start symbol and the target tokens before."""
    cross: AttentionMap
    """Encoder-decoder attention, the kind `source`: decoder steps attend to source tokens."""

    def of(self, kind: Kind) -> AttentionMap:
        """One of the three maps, by its name on the command line."""
        return {"encoder": self.encoder, "decoder": self.decoder, "source": self.cross}[kind]

    def joined(self) -> "Attention":
        """Attention between words instead of subwords."""
        maps = (self.of(kind).joined() for kind in KINDS)
        return Attention(self.source, self.target, *maps)

    def described(self) -> dict[str, Any]:
        """As JSON-serializable values: `attention[kind]["weights"][layer][head][query][key]`."""
        return {
            "source": self.source,
            "target": self.target,
            "attention": {kind: self.of(kind).described() for kind in KINDS},
        }


@torch.inference_mode()
def read_attention(
    model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int]
) -> dict[Kind, Float[Tensor, "Y H T S"]]:
    """The attention weights of one pair, including end symbols, by kind."""
    device = model.projection.weight.device
    source, target = (torch.tensor([ids], device=device) for ids in (source_ids, target_ids))
    with record_attention(model) as weights:
        model.decoder_states(target, model.encode(source))
    depths = {"encoder": model.config.n_layers}
    return {
        kind: torch.cat(
            [
                weights[name.format(layer)]
                for layer in range(depths.get(kind, model.config.decoder_depth))
            ]
        )
        .float()
        .cpu()
        for kind, name in _NAMES.items()
    }


class Encoded(NamedTuple):
    """A text and its token ids, including the end symbol."""

    text: str
    tokenizer: Tokenizer
    ids: Sequence[int]


def attend(
    model: "Transducer", source: str, target: str | None, target_language: str | None
) -> Attention:
    """See `Transducer.attend`."""
    text = as_texts([source])[0].strip()
    # The network sees the sentence as it is, so that the figure shows its words.
    (units,) = model.units(
        [text], split=False, too_long="refuse", raw=True, target_language=target_language
    )
    if not units or not units[0].ids:
        raise DataError("the source has no words; give a sentence")
    source_ids = model.source_tokenizer.framed(units[0].ids)
    if target is None:
        search = SearchConfig()
        one = Input(source_ids, model.limits.clamp(search.max_length(len(source_ids))))
        ((best, *_),) = model.native.search([one], search, no_progress)
        target_ids = [*best.ids, EOS_ID]
        target = Writer(model.target_tokenizer).text(best.ids, units[0])
    else:
        (target,) = as_texts([target], "target")
        target_ids = [*model.target_tokenizer.encode(target.strip()), EOS_ID]
    model.limits.check_pairs([max(len(source_ids), len(target_ids))])
    return attention_of(
        model.model,
        Encoded(source, model.source_tokenizer, source_ids),
        Encoded(target, model.target_tokenizer, target_ids),
    )


def attention_of(model: Transformer, source: Encoded, target: Encoded) -> Attention:
    """The attention weights of a network for a sentence pair."""
    weights = read_attention(model, source.ids, target.ids)
    read, written = (side_of(one.tokenizer, one.ids) for one in (source, target))
    return Attention(
        source.text,
        target.text,
        AttentionMap(read, read, weights["encoder"]),
        AttentionMap(written, written.after(BOS), weights["decoder"]),
        AttentionMap(written, read, weights["source"]),
    )


def side_of(tokenizer: Tokenizer, ids: Sequence[int]) -> Side:
    """The subwords of ids, and the words that they form.

    Words are separated by white space. Punctuation at either end of a word, such as `.` and `(`, is
    a separate word if the vocabulary splits it off. Punctuation inside a word, as in `it's`, is
    not.
    """
    pieces, surfaces = tokenizer.pieces_of(ids), tokenizer.surfaces(ids)
    word_of: list[int] = []
    words: list[str] = []
    for run in _runs(surfaces):
        for tokens in _without_marks(run, surfaces):
            spelt = b"".join(surfaces[token] for token in tokens).decode("utf-8", "replace")
            word_of += [len(words)] * len(tokens)
            words.append(unescape(spelt).strip() or "".join(pieces[token] for token in tokens))
    return Side(tuple(pieces), tuple(words), tuple(word_of))


def _runs(surfaces: Sequence[bytes]) -> list[list[int]]:
    """Runs of tokens without white space between them. A special symbol is a separate run."""
    runs: list[list[int]] = []
    ended = True
    for number, surface in enumerate(surfaces):
        text = surface.decode("utf-8", "surrogateescape")
        if ended or not text or text[0].isspace():
            runs.append([])
        runs[-1].append(number)
        # A token of only white space belongs to the following word.
        ended = not text or (text[-1].isspace() and not text.isspace())
    return runs


def _without_marks(run: list[int], surfaces: Sequence[bytes]) -> list[list[int]]:
    """Split a run into leading punctuation, the word, and trailing punctuation, if any."""
    spelling = [number for number in run if _spells(surfaces[number])]
    if not spelling:
        return [run]
    before = [number for number in run if number < spelling[0]]
    if not b"".join(surfaces[number] for number in before).strip():
        before = []
    first, last = len(before), spelling[-1] - run[0] + 1
    return [part for part in (before, run[first:last], run[last:]) if part]


def _spells(surface: bytes) -> bool:
    """Whether it has a letter, a digit, or a part of a character."""
    text = surface.decode("utf-8", "surrogateescape")
    return any(one.isalnum() or "\udc80" <= one <= "\udcff" for one in text)


def _membership(side: Side) -> Float[Tensor, "L words"]:
    """1 if a subword is part of a word, else 0."""
    members = torch.zeros(len(side.pieces), len(side.words))
    members[range(len(side.pieces)), side.word_of] = 1
    return members


def _described(side: Side) -> dict[str, Any]:
    return {"pieces": side.pieces, "words": side.words, "word_of": side.word_of}


def _rounded(numbers: Any) -> Any:
    return [_rounded(one) for one in numbers] if isinstance(numbers, list) else round(numbers, 6)
