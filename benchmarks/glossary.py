"""Required terms: how often a translation contains the term, and BLEU with and without it.

A case is a sentence of the test set and a pair of a term list. The source term occurs in the
sentence, its translation in the reference, but not in the model's translation. Each case has one
term.

    python benchmarks/glossary.py --test SRC REF --terms SRC TGT [--model en-de] [--json FILE]
"""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import Goal, Row, parser_of, report

import transept
from transept import Glossary, Transducer
from transept.evaluation.conventions import sacre_bleu
from transept.text.files import read_sentences
from transept.text.glossary import missing

LETTERS = 4
"""Minimum length of a term. Shorter words are mostly function words."""
CHUNK = 64


class Case(NamedTuple):
    """A sentence, its reference, a term, and the translation without it."""

    source: str
    reference: str
    term: tuple[str, str]
    plain: str


def read(paths: Sequence[Path]) -> list[tuple[str, str]]:
    sources, targets = (read_sentences(path) for path in paths)
    return [*zip(sources, targets, strict=True)]


def terms_of(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The translations of each term, without those that are too short or not words."""
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        if all(len(one) >= LETTERS and one.replace(" ", "").isalpha() for one in (source, target)):
            found.setdefault(source, []).append(target)
    return found


def candidates(
    test: Sequence[tuple[str, str]], terms: dict[str, list[str]], seed: int
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Sentences in random order, with the pairs of terms that source and reference contain."""
    keep = Glossary.of(dict.fromkeys(terms))
    by_lower = {one.lower(): one for one in terms}
    for source, reference in random.Random(seed).sample(test, len(test)):
        here = {by_lower[spellings[0].lower()] for spellings in keep.required(source)}
        pairs = [
            (one, target)
            for one in sorted(here)
            for target in terms[one]
            if not missing(reference, [(target,)])
        ]
        if pairs:
            yield source, reference, pairs


def lacks(text: str, source: str, term: tuple[str, str]) -> bool:
    """Whether a translation does not contain the term as a whole word."""
    return bool(missing(text, Glossary.of(dict([term])).required(source)))


def cases_of(
    model: Transducer,
    found: Iterator[tuple[str, str, list[tuple[str, str]]]],
    n: int,
    beam: int,
) -> tuple[list[Case], float]:
    """The cases, and the seconds per sentence without terms."""
    cases: list[Case] = []
    n_read, start = 0, time.perf_counter()
    while len(cases) < n and (some := [one for _, one in zip(range(CHUNK), found, strict=False)]):
        results = model.translate([source for source, *_ in some], split=False, beam_size=beam)
        n_read += len(some)
        for (source, reference, pairs), result in zip(some, results, strict=True):
            lacking = [pair for pair in pairs if lacks(result.text, source, pair)]
            # A translation with another form of the term, such as a plural, is a case too.
            cases += [Case(source, reference, pair, result.text) for pair in lacking[:1]]
    return cases[:n], (time.perf_counter() - start) / n_read


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar=("SRC", "REF"))
    parser.add_argument("--terms", type=Path, nargs=2, required=True, metavar=("SRC", "TGT"))
    parser.add_argument("--model", default="en-de")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--show", type=int, default=0, help="print this many cases")
    arguments = parser.parse_args()
    model = transept.load(arguments.model)
    found = candidates(read(arguments.test), terms_of(read(arguments.terms)), seed=1)
    cases, plain_seconds = cases_of(model, found, arguments.cases, arguments.beam)
    start = time.perf_counter()
    results = [
        translation
        for first in range(0, len(cases), CHUNK)
        for translation in translated(model, cases[first : first + CHUNK], arguments.beam)
    ]
    seconds = (time.perf_counter() - start) / len(cases)
    for case, result in [*zip(cases, results, strict=True)][: arguments.show]:
        print(case.term, case.source, case.plain, result, case.reference, sep="\n  ")
    pairs = zip(cases, results, strict=True)
    placed = [not lacks(one, case.source, case.term) for case, one in pairs]
    share = 100 * sum(placed) / len(cases)
    references = [case.reference for case in cases]
    texts = {"without terms": [case.plain for case in cases], "with terms": results}
    scores = {name: sacre_bleu().measure(text, references) for name, text in texts.items()}
    work = f"{len(cases)} sentences, beam {arguments.beam}"
    rows = [Row.once(work, "with terms", share, "% with the term")]
    rows += [Row.once(work, name, score.value, "BLEU") for name, score in scores.items()]
    for name, text in texts.items():
        words = sum(len(one.split()) for one in text) / sum(len(one.split()) for one in references)
        rows.append(Row.once(work, name, words, "words per word of the reference"))
    rows.append(Row.once(work, "without terms", plain_seconds, "s per sentence"))
    rows.append(Row.once(work, "with terms", seconds, "s per sentence"))
    difference = scores["with terms"].value - scores["without terms"].value
    goals = [
        Goal.at_least("% with the term", share, 99.0),
        Goal.at_least("BLEU with terms minus without", difference, -0.3),
    ]
    report("glossary", rows, goals, ["transept", "torch", "sacrebleu"], arguments.json)


def translated(model: Transducer, cases: Sequence[Case], beam: int) -> list[str]:
    """Translate each sentence with its own term."""
    units = [
        unit
        for case in cases
        for (unit,) in model.units([case.source], split=False, glossary=dict([case.term]))
    ]
    return [best.text for best, *_ in model.translate_units(units, beam_size=beam)]


if __name__ == "__main__":
    main()
