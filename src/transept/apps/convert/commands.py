"""`transept import` and `transept export`."""

import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

from transept.errors import ConfigError
from transept.runtime.interrupt import import_torch

Toolkit = Literal["ctranslate2", "argos", "marian", "onnx"]
Format = Literal["int8", "bf16", "ctranslate2", "argos", "marian", "onnx"]
Languages = tuple[str | None, str | None]
# Repeated from the exporter, because --help does not import torch.
Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"
]
QUANTIZATIONS = {
    "argos": get_args(Quantization),
    "ctranslate2": get_args(Quantization),
    "onnx": ("float32", "int8"),
}
"""The values of --quantization by format."""

SIDES = ("source", "target")
USE = {
    "ctranslate2": """
    import ctranslate2, sentencepiece
    source = sentencepiece.SentencePieceProcessor("{source_model}")
    target = sentencepiece.SentencePieceProcessor("{target_model}")
    translator = ctranslate2.Translator("{output}")
    pieces = source.encode("A sentence.", out_type=str)
    (result,) = translator.translate_batch([pieces], beam_size=4, length_penalty=0.6)
    print(target.decode(result.hypotheses[0]))

CTranslate2 divides log P by |Y|^α. The paper divides by ((5 + |Y|) / 6)^α. So scores, and sometimes
translations, differ. `transept translate --engine ctranslate2` ranks by the paper's score.
""",
    "marian": """
    from transformers import AutoModelForSeq2SeqLM, MarianTokenizer
    tokenizer = MarianTokenizer.from_pretrained("{output}")
    model = AutoModelForSeq2SeqLM.from_pretrained("{output}")
    ids = model.generate(**tokenizer("A sentence.", return_tensors="pt"), num_beams=4)
    print(tokenizer.decode(ids[0], skip_special_tokens=True))
""",
    "onnx": """
    from optimum.onnxruntime import ORTModelForSeq2SeqLM
    from transformers import MarianTokenizer
    tokenizer = MarianTokenizer.from_pretrained("{output}")
    model = ORTModelForSeq2SeqLM.from_pretrained("{output}")
    ids = model.generate(**tokenizer("A sentence.", return_tensors="pt"), num_beams=4)
    print(tokenizer.decode(ids[0], skip_special_tokens=True))
""",
    "argos": """
    python -c "from argostranslate import package; package.install_from_path('{output}')"
    argos-translate --from {source} --to {target} "A sentence."

LibreTranslate serves every package that is installed this way.
""",
}


def import_(
    path: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    tokenizer: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    source_language: str | None = None,
    target_language: str | None = None,
) -> None:
    """Import a model of another toolkit.

    The format is recognized: a MarianMT directory of Hugging Face transformers (most OPUS-MT
    models), a .npz file of Marian, a CTranslate2 directory or an Argos package (.argosmodel). The
    new directory is an ordinary model: every command, the Python API and the server accept it. The
    network and its vocabulary are imported exactly. A network that transept does not have, such as
    one with rotary positions, is rejected with an error that names the setting.

    No code that comes with the model is run: pickled weights are read by PyTorch's restricted
    reader.

    Args:
        path: The model.
        output: The new directory.
        tokenizer: The sentencepiece model, if there is none beside the model. Given twice: those of
            source and target. none: text is already split into entries, with spaces between them.
        source_language: The source language, such as en, for the server. Default: from the model.
        target_language: The target language.
    """
    import_torch()
    from transept.apps.convert.importing import import_model

    found = import_model(path, output, tokenizer, (source_language, target_language))
    languages = " to ".join(str(found.about.get(f"{side}_language", "?")) for side in SIDES)
    depth = f"{len(found.encoder)} + {len(found.decoder)}"
    facts = {
        "format": found.about["format"],
        "languages": languages,
        "network": f"{depth} layers, d_model {found.projection.shape[1]}, {found.activation}",
        "vocabulary": f"{len(found.source.entries):,} to {len(found.target.entries):,} entries",
        "licence": found.about.get("licence", "not stated"),
    }
    for what, value in facts.items():
        sys.stdout.write(f"{what:12} {value}\n")
    tags = [entry for entry in found.source.entries if entry.startswith(">>")]
    example = f" --target {tags[0].strip('<>')}" if tags else ""
    command = f'transept translate --model {output}{example} "A sentence."'
    sys.stdout.write(f"\nTo use it:\n\n    {command}\n")


def export(
    *,
    model: str | None = None,
    to: Format,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    quantization: Quantization | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> None:
    """Quantize a model, or convert it for another toolkit.

    int8 and bf16 write a smaller model for transept, which every command accepts. int8 stores
    matrices as 8-bit integers with one scale per row, bf16 the upper half of every number.
    Computation stays in single precision, at the same speed. Only CTranslate2 multiplies the
    matrices of an int8 model as 8-bit integers (`transept translate --engine`).

    ctranslate2 writes a directory for CTranslate2, with the vocabularies as sentencepiece models.
    argos writes a package (.argosmodel) that Argos Translate installs and LibreTranslate serves.
    marian writes a directory for MarianMTModel of Hugging Face transformers. onnx writes an encoder
    and two decoders, with and without past keys, for ONNX Runtime, Hugging Face Optimum and
    transformers.js.

    After writing, the exported model is run by the other toolkit and compared with the original:
    greedy translations must be equal. A network that a format does not support is rejected with an
    error that names the config key.

    Args:
        model: The directory of a model, a run, a demo or a recipe, or the name of a bundled model
            (already int8). Default: en-de.
        to: The format to write.
        output: The new directory; for argos, the new file.
        quantization: How ctranslate2, argos and onnx store the weights. All values except float32
            change results. Those with float16 in their names are for a GPU. onnx has float32 and
            int8. Default: float32.
        source_language: The source language of an Argos package, such as en. Default: from the
            model.
        target_language: Its target language.
    """
    _check_options(to, quantization, (source_language, target_language))
    import_torch()
    if to == "int8" or to == "bf16":
        _quantize(model, output, to)
    else:
        _convert(model, output, to, quantization or "float32", (source_language, target_language))


def _check_options(to: Format, quantization: Quantization | None, given: Languages) -> None:
    known = QUANTIZATIONS.get(to, ())
    if quantization is not None and quantization not in known:
        what = f"has {', '.join(known)}" if known else "has none; omit it"
        raise ConfigError(f"--quantization {quantization}: --to {to} {what}")
    if any(given) and to != "argos":
        raise ConfigError("--source-language and --target-language are for --to argos; omit them")


def _convert(
    name: str | None, output: Path, to: Toolkit, quantization: Quantization, given: Languages
) -> None:
    from transept.api.models import languages_of
    from transept.apps.convert import exporting
    from transept.checkpoint import tokenizers_in
    from transept.text.tokenizer import MODEL_FILE

    model = exporting.Exportable.load(name)
    known = languages_of(model.directory)
    source, target = (one or other for one, other in zip(given, known, strict=True))
    if to == "argos":
        verification = exporting.export_argos(model, output, (source, target), quantization)
    elif to == "ctranslate2":
        verification = exporting.export_ctranslate2(model, output, quantization)
    elif to == "marian":
        verification = exporting.export_marian(model, output)
    else:
        verification = exporting.export_onnx(model, output, quantization == "int8")
    size = sum(path.stat().st_size for path in (output, *output.rglob("*")) if path.is_file())
    sys.stdout.write(f"{output}: {size / 1e6:,.1f} MB, {quantization}\n{verification}\n")
    models = [folder / MODEL_FILE for folder in tokenizers_in(output).values()] or [output]
    use = USE[to].format(
        output=output, source=source, target=target, source_model=models[0], target_model=models[-1]
    )
    sys.stdout.write(f"\nTo use it:\n{use}")


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
