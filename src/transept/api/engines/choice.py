"""Which engine is used."""

from collections.abc import Sequence

from transept.api.config import EngineName
from transept.api.engines.ctranslate2 import CTranslate2Engine
from transept.api.engines.engine import Engine
from transept.api.engines.native import NativeEngine
from transept.api.networks import Networks
from transept.errors import ConfigError, Problem
from transept.export import ctranslate2 as export
from transept.export.ctranslate2 import Names
from transept.model.transformer import Transformer
from transept.quantization import Precision
from transept.text.tokenizer import Tokenizer


def choose(
    name: EngineName,
    models: Sequence[Transformer],
    tokenizers: tuple[Tokenizer, Tokenizer],
    stored: Sequence[Precision],
) -> Engine:
    """The engine of a name.

    `auto` never changes what a model computes in: it is native, unless the model itself was
    quantized to int8. Then CTranslate2, where it is installed and can express the network, is two
    to three times as fast on a CPU (docs/performance.md). In single precision the two are within a
    quarter of each other, now one ahead, now the other, and native searches as the paper does.

    Args:
        name: As it was asked for.
        models: The networks, where they compute.
        tokenizers: What they read and write.
        stored: In what their weights were stored.
    """
    native = NativeEngine(Networks(models))
    if name == "auto":
        quick = set(stored) == {"int8"} and export.is_installed() and not _hindrances(models)
        name = "ctranslate2-int8" if quick else "native"
    if name == "native":
        return native
    export.require()
    if problems := _hindrances(models):
        raise ConfigError(problems)
    names = Names.of(*tokenizers)
    if name == "ctranslate2-int8":
        return CTranslate2Engine(models[0], names, native, "int8")
    return CTranslate2Engine(models[0], names, native, "float32")


def _hindrances(models: Sequence[Transformer]) -> list[Problem]:
    """Why CTranslate2 cannot serve these networks."""
    if len(models) > 1:
        what = f"CTranslate2 runs one model, not {len(models)} that decide together; use native"
        return [Problem("engine", what)]
    device = models[0].projection.weight.device.type
    if device != "cpu":
        return [Problem("engine", f"CTranslate2 is for the CPU here, not for {device}")]
    return export.obstacles(models[0].config)
