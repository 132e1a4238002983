"""Choosing the engine of a model."""

from collections.abc import Sequence
from typing import get_args

from transept.api.config import EngineName
from transept.api.engines.ctranslate2 import CTranslate2Engine
from transept.api.engines.engine import Engine
from transept.api.engines.fused.fit import obstacles
from transept.api.engines.native import NativeEngine
from transept.api.networks import Networks
from transept.config import did_you_mean
from transept.decoding.shortlist import Shortlist
from transept.errors import ConfigError, Problem
from transept.export import ctranslate2 as export
from transept.export.ctranslate2 import Names
from transept.model.transformer import Transformer
from transept.quantization import Precision
from transept.text.tokenizer import Tokenizer

ENGINES: tuple[str, ...] = get_args(EngineName)


def choose(
    name: EngineName,
    models: Sequence[Transformer],
    tokenizers: tuple[Tokenizer, Tokenizer],
    stored: Sequence[Precision],
    shortlist: Shortlist | None = None,
) -> Engine:
    """The engine with this name.

    On a GPU, `auto` is `fused` if that supports the network, and else `native`. On a CPU, `auto`
    never changes the precision that a model computes in. It is `native`, unless the model itself
    was quantized to int8. Such a model is two to three times as fast in CTranslate2
    (docs/performance.md), which is chosen if it is installed and supports the network. In single
    precision neither of the two is always faster, the difference is at most a quarter, and `native`
    searches as the paper does.

    Args:
        name: The name that the user gave.
        models: The networks, on the device where they compute.
        tokenizers: The vocabularies that they read and write.
        stored: The precision in which the weights of each were stored.
        shortlist: The target tokens to choose among; only `native` can use it.
    """
    if name not in ENGINES:
        raise ConfigError([Problem("engine", f"{name!r} is none; {did_you_mean(name, ENGINES)}")])
    native = NativeEngine(Networks(models), shortlist, _slow_note(name, models))
    if shortlist is not None and name not in ("auto", "native"):
        raise ConfigError([Problem("shortlist", f"is for the native engine, not for {name}")])
    if name == "auto":
        name = "native" if shortlist else _automatic(models, stored)
    if name == "native":
        return native
    if name == "fused":
        return _fused(models, native)
    export.require()
    if problems := _ctranslate2_obstacles(models):
        raise ConfigError(problems)
    names = Names.of(*tokenizers)
    if name == "ctranslate2-int8":
        return CTranslate2Engine(models[0], names, native, "int8")
    return CTranslate2Engine(models[0], names, native, "float32")


def _automatic(models: Sequence[Transformer], stored: Sequence[Precision]) -> EngineName:
    if models[0].projection.weight.is_cuda:
        return "native" if _fused_obstacles(models) else "fused"
    quick = set(stored) == {"int8"} and export.is_installed() and not _ctranslate2_obstacles(models)
    return "ctranslate2-int8" if quick else "native"


def _slow_note(name: EngineName, models: Sequence[Transformer]) -> str:
    """What to tell a user who expects the fast search on a GPU and gets `native`."""
    reasons = _fused_obstacles(models)
    if name != "auto" or not models[0].projection.weight.is_cuda or not reasons:
        return ""
    return f"fused does not know {', '.join(reasons)}; this one is many times slower"


def _fused(models: Sequence[Transformer], native: NativeEngine) -> Engine:
    if reasons := _fused_obstacles(models):
        what = f"fused does not know {', '.join(reasons)}: take native, which does"
        raise ConfigError([Problem("engine", what)])
    from transept.api.engines.fused.engine import FusedEngine

    return FusedEngine(models[0], native)


def _fused_obstacles(models: Sequence[Transformer]) -> list[str]:
    """Why `fused` cannot search with these networks; empty if it can."""
    if len(models) > 1:
        return ["several models that decide together"]
    device = models[0].projection.weight.device.type
    return [f"the device {device!r}"] if device != "cuda" else obstacles(models[0].config)


def _ctranslate2_obstacles(models: Sequence[Transformer]) -> list[Problem]:
    """Why CTranslate2 cannot search with these networks; empty if it can."""
    if len(models) > 1:
        what = f"CTranslate2 runs one model, not {len(models)} that decide together; use native"
        return [Problem("engine", what)]
    device = models[0].projection.weight.device.type
    if device != "cpu":
        return [Problem("engine", f"CTranslate2 is for the CPU here, not for {device}")]
    return export.obstacles(models[0].config)
