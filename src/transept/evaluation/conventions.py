"""Which tokens are counted, and what to call the result.

    sacreBLEU                          the text as it is, cut by 13a            WMT's, Post 2018
    sacreBLEU, lower-cased             the same, both sides lower-cased
    chrF2                              n-grams of characters                    Popović 2015
    tokenised BLEU                     Moses' tokens, multi-bleu.perl
    tokenised BLEU, compounds split    the same, words cut at their hyphens     the paper's

Tokenizer, arithmetic and signature of the first three are the sacrebleu library's.
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
    """The BLEU of detokenised text that can be compared between papers: sacreBLEU's defaults."""
    # The signature says how many references there are: hence the one, empty, that is given here.
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
    """The BLEU that papers of 2017 report: multi-bleu.perl on the Moses tokenizer's output.

    With compounds split it is tensor2tensor's get_ende_bleu.sh, the paper's convention. That
    script took a reference that had been tokenised elsewhere; here both sides are tokenised alike.

    Args:
        language: Of the translations.
        compounds: Whether words are cut at their hyphens.
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
    """The chrF2 of all sentences together."""
    library = CHRF()
    result = library.corpus_score(hypotheses, [references])
    convention = Convention(name=result.name, signature=str(library.get_signature()))
    return Score(convention=convention, value=result.score)


def split_compounds(line: str) -> str:
    r"""A line of tokens in which each hyphen between two other characters is a token of its own.

    Exactly `s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g` of tensor2tensor, in which the characters beside
    a hyphen are used up: `a-b-c` is cut once. Perl works on bytes there, so `a-ä-c` is cut twice.
    """
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def _signature(tokens: str) -> str:
    """Ours, in the form of sacreBLEU's."""
    return f"nrefs:1|case:mixed|{tokens}|smooth:none|version:transept-{__version__}"
