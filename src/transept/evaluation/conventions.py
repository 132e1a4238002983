"""Scoring conventions: tokenization, names and signatures.

    sacreBLEU                          plain text, tokenizer 13a                WMT, Post 2018
    sacreBLEU, lower-cased             the same, both sides lower-cased
    chrF2                              character n-grams                        Popović 2015
    tokenised BLEU                     Moses tokenizer, multi-bleu.perl
    tokenised BLEU, compounds split    the same, words split at hyphens         the paper

The first three are computed by the sacrebleu library, including their signatures.
"""

import re
from collections.abc import Sequence
from typing import Literal

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transept.evaluation.bleu import Bleu
from transept.evaluation.scores import Convention, Score
from transept.text import moses
from transept.version import __version__

Case = Literal["mixed", "lower"]
Compounds = Literal["whole", "split"]

_COMPOUND = re.compile(rb"(\S)-(\S)")


def sacre_bleu(case: Case = "mixed") -> Bleu:
    """BLEU of detokenised text, with sacreBLEU's defaults. Comparable between papers."""
    # One empty reference, because the signature includes the number of references.
    library = BLEU(lowercase=case == "lower", references=[[""]])

    def tokenize(line: str) -> list[str]:
        cut: str = library.tokenizer(line.rstrip())
        return cut.split()

    return Bleu(
        convention=Convention(
            name="sacreBLEU" if case == "mixed" else "sacreBLEU, lower-cased",
            signature=str(library.get_signature()),
        ),
        tokenize=tokenize if case == "mixed" else lambda line: tokenize(line.lower()),
        smoothing="exp",
    )


def tokenised_bleu(language: moses.Language, compounds: Compounds = "whole") -> Bleu:
    """BLEU as in papers of 2017: multi-bleu.perl on the output of the Moses tokenizer.

    With compounds split, it is the paper's convention, tensor2tensor's get_ende_bleu.sh. That
    script used a tokenised reference. Here both sides are tokenised in the same way.

    Args:
        language: The language of the translations.
        compounds: Whether to split words at hyphens.
    """

    def tokenize(line: str) -> list[str]:
        return moses.tokenize(line, language)

    def tokenize_and_split(line: str) -> list[str]:
        return split_compounds(" ".join(tokenize(line))).split()

    split = compounds == "split"
    return Bleu(
        convention=Convention(
            name="tokenised BLEU, compounds split" if split else "tokenised BLEU",
            signature=_signature(f"tok:moses-{language}|atat:{'yes' if split else 'no'}"),
        ),
        tokenize=tokenize_and_split if split else tokenize,
    )


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The corpus chrF2."""
    library = CHRF()
    result = library.corpus_score(hypotheses, [references])
    convention = Convention(name=result.name, signature=str(library.get_signature()))
    return Score(convention=convention, value=result.score)


def split_compounds(line: str) -> str:
    r"""Make each hyphen between two other characters a separate token.

    Exactly `s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g` of tensor2tensor. Matches consume the characters
    next to the hyphen, so `a-b-c` is split once. Perl matches bytes, so `a-ä-c` is split twice.
    """
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def _signature(tokens: str) -> str:
    """A signature in the format of sacreBLEU."""
    return f"nrefs:1|case:mixed|{tokens}|smooth:none|version:transept-{__version__}"
