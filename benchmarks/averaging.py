"""The effect of averaging checkpoints and of ensembles (section 6.1).

    python benchmarks/averaging.py RUN --source FILE --reference FILE [--ensemble DIR …]
        [--json FILE]

RUN is a training run that kept its last 20 checkpoints (`checkpoint.keep=20`). Its newest
checkpoint is scored, and averages of its last 5, 10 and 20. With `--ensemble`, so are ensembles of
the first two, three and so on of these models.
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from measuring import Row, parser_of, report

import transept
from transept import Transducer, assembly
from transept.api.perplexity import measure_perplexities
from transept.checkpoint import CHECKPOINTS, Checkpoints
from transept.evaluation.conventions import sacre_bleu
from transept.text.files import read_text

COUNTS = (1, 5, 10, 20)


def measure(model: Transducer, sources: Sequence[str], references: Sequence[str]) -> list[float]:
    """BLEU with beam 4, and perplexity per token."""
    found = model.translate(sources, split=False, raw=True)
    bleu = sacre_bleu().measure([each.text for each in found], references).value
    return [bleu, measure_perplexities(model, sources, references)[0].value]


def main() -> None:
    parser = parser_of(__doc__ or "")
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--ensemble", type=Path, nargs="+", default=[])
    args = parser.parse_args()
    sources, references = (list(read_text(path)) for path in (args.source, args.reference))
    rows = []

    def add(work: str, model: Transducer) -> None:
        values = measure(model, sources, references)
        print(work, *values, flush=True)
        for unit, value in zip(("BLEU", "PPL"), values, strict=True):
            rows.append(Row.once(work, "transept", value, unit))

    checkpoints = Checkpoints(args.run / CHECKPOINTS)
    steps = checkpoints.regular_steps()
    for count in (count for count in COUNTS if count <= len(steps)):
        with TemporaryDirectory() as directory:
            bundles = [checkpoints.open(step) for step in steps[-count:]]
            assembly.write_average(bundles, Path(directory, "average"), replace=True)
            add(f"average of {count}", transept.load(Path(directory, "average")))
    for size in range(2, len(args.ensemble) + 1):
        add(f"ensemble of {size}", transept.load(args.ensemble[:size]))
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    report("averaging", rows, [], ["torch"], args.json, gpu)


if __name__ == "__main__":
    main()
