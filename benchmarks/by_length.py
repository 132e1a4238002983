"""Quality by the length of the source, also beyond the lengths of the training text.

    python benchmarks/by_length.py --model NAME=DIR … --source FILE --reference FILE [--json FILE]

Section 3.5 chooses sinusoids because they "may allow the model to extrapolate to sequence lengths
longer than the ones encountered during training". Compare models that were trained on short
sentences only, with sinusoids and with learned positions:

    transept recipe run table3 --rows configs/length --data DIR

`configs/length-small.toml` does the same on a CPU, with shorter sentences and a smaller network.

Each input is a sentence of the test set, or several consecutive ones as one text, if a single one
is too short for its range of lengths. It is translated and scored as a whole, also if it is longer
than the sentences of the training. Several directories with the same NAME are seeds: the value is
their median, with quartiles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path

import torch
from measuring import Row, parser_of, report

import transept
from transept import Transducer, Translation
from transept.evaluation.conventions import sacre_bleu
from transept.text.files import read_text

RANGES = [(1, 16), (17, 32), (33, 48), (49, 64), (65, 96), (97, 128), (129, 192), (193, 256)]
"""The least and the greatest number of source tokens."""
MOST = 400
"""The greatest number of inputs in a range."""


@dataclass
class Inputs:
    """Sources and their references."""

    sources: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)


def inputs_in(
    lengths: Sequence[int], sources: Sequence[str], references: Sequence[str], low: int, high: int
) -> Inputs:
    """Consecutive sentences whose lengths add up to a range, each sentence at most once."""
    found, start, total = Inputs(), 0, 0
    for end, length in enumerate(lengths, start=1):
        total += length
        if total < low:
            continue
        if total <= high and len(found.sources) < MOST:
            found.sources.append(" ".join(sources[start:end]))
            found.references.append(" ".join(references[start:end]))
        start, total = end, 0
    return found


def translated_whole(model: Transducer, sources: Sequence[str]) -> list[Translation]:
    """The translations. By default, texts longer than those of the training are cut into parts."""
    longest = max(map(len, model.source_tokenizer.encode_batch(sources))) + 1
    return model.translate(
        sources, split=False, raw=True, max_source_length=longest, too_long="refuse"
    )


def measure(model: Transducer, inputs: Inputs) -> tuple[float, float, float]:
    """BLEU, perplexity per token, and the length of the translations by that of the references."""
    texts = [each.text for each in translated_whole(model, inputs.sources)]
    bleu = sacre_bleu().measure(texts, inputs.references)
    scored = model.score(inputs.sources, inputs.references, segmentation="canonical")
    tokens = sum(len(pair.tokens) for pair in scored)
    perplexity = exp(-sum(pair.log_probability for pair in scored) / tokens)
    assert bleu.breakdown is not None
    return round(bleu.value, 2), perplexity, bleu.breakdown.length_ratio


def main() -> None:
    parser = parser_of(__doc__ or "", quick="only 20 inputs of each length")
    parser.add_argument("--model", action="append", required=True, metavar="NAME=DIR")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    args = parser.parse_args()
    if args.quick:
        global MOST
        MOST = 20
    sources, references = (list(read_text(path)) for path in (args.source, args.reference))
    found: dict[tuple[str, str, str], list[float]] = {}
    for name, _, directory in (each.partition("=") for each in args.model):
        model = transept.load(directory)
        lengths = [len(model.source_tokenizer.encode(line)) for line in sources]
        for low, high in RANGES:
            inputs = inputs_in(lengths, sources, references, low, high)
            if not inputs.sources:
                continue
            work = f"{low} to {high} tokens"
            values = measure(model, inputs)
            print(f"{name:24} {work:18} {len(inputs.sources):4}", *values, flush=True)
            for unit, value in zip(("BLEU", "PPL", "length ratio"), values, strict=True):
                found.setdefault((work, name, unit), []).append(value)
    rows = [
        Row.of(work, name, values, unit)
        if len(values) > 1
        else Row.once(work, name, values[0], unit)
        for (work, name, unit), values in found.items()
    ]
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    report("by_length", rows, [], ["torch"], args.json, gpu)


if __name__ == "__main__":
    main()
