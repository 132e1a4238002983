"""`transept export`: quantize a model, or convert it for CTranslate2."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from transept.errors import ConfigError
from transept.runtime.interrupt import import_torch

Format = Literal["int8", "bf16", "ctranslate2"]
# Repeated from the exporter, because --help does not import torch.
Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"
]

USE = """
To use it without transept:

    import ctranslate2, sentencepiece
    source = sentencepiece.SentencePieceProcessor("{source}")
    target = sentencepiece.SentencePieceProcessor("{target}")
    translator = ctranslate2.Translator("{directory}")
    pieces = [*source.encode("A sentence.", out_type=str), "</s>"]
    (result,) = translator.translate_batch([pieces], beam_size=4, length_penalty=0.6)
    print(target.decode(result.hypotheses[0]))

CTranslate2 divides log P by |Y|^α. The paper divides by ((5 + |Y|) / 6)^α. So scores, and sometimes
translations, differ. `transept translate --engine ctranslate2` ranks by the paper's score.
"""


def export(
    *,
    model: str | None = None,
    to: Format,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    quantization: Quantization | None = None,
) -> None:
    """Quantize a model, or convert it for CTranslate2.

    int8 and bf16 write a smaller model for transept, which every command accepts. int8 stores
    matrices as 8-bit integers with one scale per row, bf16 the upper half of every number.
    Computation stays in single precision, at the same speed. Only CTranslate2 multiplies the
    matrices of an int8 model as 8-bit integers (`transept translate --engine`).

    ctranslate2 writes a directory for CTranslate2, with the vocabularies as sentencepiece models.
    The network is exported exactly. A network that CTranslate2 does not support is rejected with an
    error that names the config key.

    Args:
        model: The directory of a model, a run, a demo or a recipe, or the name of a bundled model
            (already int8). Default: en-de.
        to: The format to write.
        output: The new directory.
        quantization: How CTranslate2 stores the weights. All values except float32 change results.
            Those with float16 in their names are for a GPU. Default: float32.
    """
    if quantization is not None and to != "ctranslate2":
        raise ConfigError(f"--quantization requires --to ctranslate2; omit it with --to {to}")
    import_torch()
    if to == "ctranslate2":
        _export_to_ctranslate2(model, output, quantization or "float32")
    else:
        _quantize(model, output, to)


def _quantize(model: str | None, output: Path, to: Literal["int8", "bf16"]) -> None:
    from transept.api.models import quantize

    report = quantize(model, to, output)
    before, after = (f"{n / 1e6:,.2f} MB" for n in (report.bytes_before, report.bytes_after))
    rounding = report.rounding
    for what, value in {
        "stored as": to,
        "weights": f"{before} before, {after} after",
        "error of a weight": f"at most {rounding.weight:.2%} of the largest in its row",
        "error of a matrix": f"at most {rounding.matrix:.2%} ({rounding.name})",
    }.items():
        sys.stdout.write(f"{what:18} {value}\n")


def _export_to_ctranslate2(model: str | None, output: Path, quantization: Quantization) -> None:
    from transept.checkpoint import tokenizers_in
    from transept.formats.ctranslate2 import export_model
    from transept.text.tokenizer import MODEL_FILE

    export_model(model, output, quantization)
    size = sum(path.stat().st_size for path in output.rglob("*"))
    sys.stdout.write(f"{output}: {size / 1e6:,.1f} MB, {quantization}\n")
    tokenizers = [path / MODEL_FILE for path in tokenizers_in(output).values()]
    source, target = tokenizers[0], tokenizers[-1]
    sys.stdout.write(USE.format(directory=output, source=source, target=target))
