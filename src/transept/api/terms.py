"""Terms of a glossary as required token sequences of a search."""

from collections.abc import Sequence
from functools import cached_property

from transept.api.texts import Unit
from transept.decoding.engine import Ids, Spelling
from transept.text.glossary import Glossary
from transept.text.tokenizer import Tokenizer

Tokens = tuple[int, ...]
OPENING = "([{\"'„“”‚‘’«»"
"""Brackets and quotation marks that may precede a word without a space."""


class TermTokens:
    """Encodes terms with the target vocabulary of a model."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def _opening(self) -> dict[str, int]:
        """The opening marks that are single tokens, and these tokens."""
        encoded = {mark: self._tokenizer.encode(mark) for mark in OPENING}
        return {mark: ids[0] for mark, ids in encoded.items() if len(ids) == 1}

    def required(self, unit: Unit) -> tuple[list[Ids], Spelling]:
        """The token sequences that the output of a unit must contain, and how they may occur."""
        required: list[Ids] = [*unit.required]
        forms, first = dict[Tokens, list[Tokens]](), dict[Tokens, list[Tokens]]()
        for spellings in unit.terms:
            ids, *capitalized = self._encoded(spellings)
            # A term with an unknown character cannot be placed, so it is not required.
            if self._tokenizer.unk_id not in ids:
                required.append(ids)
                first[ids] = capitalized
                # sentencepiece puts a space before a text. A word after an opening mark has no
                # space before it, and therefore other tokens.
                forms[ids] = self._encoded(
                    [mark + one for one in spellings for mark in self._opening]
                )
        opening = frozenset(self._opening.values())
        # After the last token of a term, another token must not continue the word.
        return required, Spelling(self._tokenizer.after_word, opening, forms, first)

    def _encoded(self, texts: Sequence[str]) -> list[Tokens]:
        return [tuple(ids) for ids in self._tokenizer.encode_batch(texts)]


def with_terms(units: list[Unit], glossary: Glossary) -> list[Unit]:
    """The units with the terms that their outputs must contain."""
    return [
        unit._replace(terms=glossary.required(unit.text)) if unit.ids else unit for unit in units
    ]
