"""`transept quantize`: a model in less room, and what that costs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from transept.runtime.interrupt import import_torch

if TYPE_CHECKING:
    from transept.api.models import Quantized
    from transept.evaluation.scores import Score


def quantize(
    *,
    model: str,
    to: Literal["int8", "bf16"],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    test: Annotated[tuple[Path, Path] | None, Parameter(negative="")] = None,
) -> None:
    """Store a model in less room, and measure what that costs.

    The new model is a model like any other, and every command takes it. It still computes in
    single precision, as fast as before; only `transept translate`, where CTranslate2 is installed,
    multiplies an int8 model's matrices as 8-bit integers (see its --engine).

    Args:
        model: The directory of a model, a run, a demo or a recipe. (The shipped models are in int8
            already.)
        to: int8 stores a matrix as 8-bit integers with a scale for each row; bf16 keeps the upper
            half of every number.
        output: The new directory.
        test: A test set, source and reference: the old and the new model translate it, and are
            compared.
    """
    import_torch()
    from transept.api.models import quantize
    from transept.evaluation.reading import read_aligned

    lines = None if test is None else read_aligned(test)
    report = quantize(model, to, output)
    _tell("stored as", to)
    _tell("weights", f"{_size(report.bytes_before)} before, {_size(report.bytes_after)} after")
    _tell("error of a weight", f"at most {report.rounding.weight:.2%} of the largest in its row")
    _tell("error of a matrix", f"at most {report.rounding.matrix:.2%} ({report.rounding.name})")
    if lines is not None:
        _compare(report, *lines)


def _tell(what: str, value: str) -> None:
    sys.stdout.write(f"{what:18} {value}\n")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.2f} MB"


def _compare(report: "Quantized", sources: list[str], references: list[str]) -> None:
    """BLEU before and after, and how many translations stayed what they were."""
    before, after = (_translated(path, sources) for path in (report.before, report.after))
    for what, lines in (("before", before), ("after", after)):
        score = _bleu(lines, references)
        _tell(f"BLEU {what}", f"{score.value:.2f}   {score.convention.signature}")
    same = sum(one == other for one, other in zip(before, after, strict=True))
    _tell("same translations", f"{same:,} of {len(sources):,} ({same / len(sources):.1%})")


def _translated(model: Path, sources: list[str]) -> list[str]:
    from transept.cli.models import Models
    from transept.cli.progress import ProgressBar

    transducer = Models(model=(str(model),)).load()
    with ProgressBar("sentences", len(sources), results_to_stdout=False) as bar:
        found = transducer.translate(
            sources,
            split=False,
            too_long="split",
            watch=lambda done, total: bar.share(len(sources), done, total),
        )
    return [one.text.replace("\n", " ") for one in found]


def _bleu(hypotheses: list[str], references: list[str]) -> "Score":
    from transept.evaluation.conventions import sacre_bleu

    return sacre_bleu().measure(hypotheses, references)
