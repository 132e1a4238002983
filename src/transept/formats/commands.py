"""`transept export`: a model for another engine."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from transept.runtime.interrupt import import_torch

Engine = Literal["ctranslate2"]
# The exporter's own list; written out here because --help does not wait for torch.
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

CTranslate2 divides log P by |Y|^α where the paper divides by ((5 + |Y|) / 6)^α: its scores, and now
and then its translations, are others. `transept translate --engine ctranslate2` ranks as the paper.
"""


def export(
    *,
    model: str | None = None,
    to: Engine,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    quantization: Quantization = "float32",
) -> None:
    """Write a model for another engine: CTranslate2.

    The network is exported exactly as it is. If the engine cannot express it, it is refused, with
    the key in the model's config that is to blame. The vocabularies are written too, as models of
    sentencepiece.

    Args:
        model: The directory of a model, a run, a demo or a recipe, or the name of a shipped model;
            unless given, en-de.
        to: The engine to write for.
        output: The new directory.
        quantization: How the weights are stored. All but float32 change results; those with
            float16 in their names are for a GPU.
    """
    import_torch()
    from transept.checkpoint import tokenizers_in
    from transept.formats.ctranslate2 import export_model
    from transept.text.tokenizer import MODEL_FILE

    assert to == "ctranslate2"
    export_model(model, output, quantization)
    size = sum(path.stat().st_size for path in output.rglob("*"))
    sys.stdout.write(f"{output}: {size / 1e6:,.1f} MB, {quantization}\n")
    tokenizers = [path / MODEL_FILE for path in tokenizers_in(output).values()]
    source, target = tokenizers[0], tokenizers[-1]
    sys.stdout.write(USE.format(directory=output, source=source, target=target))
