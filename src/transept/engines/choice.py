"""Which engine runs a model. `transept.gateway` calls these functions by name."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from transept.api.config import EngineName
from transept.config import did_you_mean
from transept.data.config import BatchConfig
from transept.decoding.engine import Engine
from transept.engines.ctranslate2 import CTranslate2Engine
from transept.engines.native.engine import NativeEngine
from transept.engines.shortlist import Shortlist
from transept.engines.shortlist import learn_shortlist as learn_shortlist
from transept.errors import ConfigError, Problem
from transept.formats import ctranslate2_writer as export
from transept.formats.ctranslate2_writer import Names
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.quantization import Precision
from transept.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transept.training.update import Update

ENGINES: tuple[str, ...] = get_args(EngineName)
SIZES = (16, 32, 64, 128)
"""The sizes of heads and tiles that the tensor cores support."""
NO_TRITON = "Triton is not installed"


def native(models: Sequence[Transformer]) -> NativeEngine:
    """The engine that runs on every device and supports every variant of the network."""
    return NativeEngine(models)


def choose(
    name: str,
    models: Sequence[Transformer],
    tokenizers: tuple[Tokenizer, Tokenizer],
    stored: Sequence[Precision],
    shortlist: Path | None = None,
) -> Engine:
    """The engine with this name.

    `auto` searches as the paper does: with `fused` on a GPU if that supports the network, otherwise
    with `native`. `fastest` is `auto`, except on a CPU for a model that is stored in int8: there it
    is `ctranslate2-int8`, which takes about half the time (docs/performance.md), if CTranslate2 is
    installed and supports the network.

    Args:
        name: The name given by the user.
        models: The networks, on their device.
        tokenizers: The tokenizers of source and target.
        stored: The precision in which the weights of each model are stored.
        shortlist: A shortlist file; only `native` and `native-int8` support it.
    """
    if name not in ENGINES:
        cure = did_you_mean(name, ENGINES)
        raise ConfigError([Problem("engine", f"{name!r} is not an engine; {cure}")])
    if shortlist is not None and name not in ("auto", "fastest", "native", "native-int8"):
        raise ConfigError([Problem("shortlist", f"requires the native engine, not {name}")])
    listed = None
    if shortlist is not None:
        source, target = tokenizers
        listed = Shortlist.load(shortlist, (source.sha256, target.sha256))
        name = "native-int8" if name == "native-int8" else "native"
    exact, fastest = _automatic(models), _fastest(models, stored)
    faster = fastest if name == "auto" and fastest != exact else None
    native_engine = NativeEngine(models, listed, note=_slow_note(name, models), faster=faster)
    name = {"auto": exact, "fastest": fastest}.get(name, name)
    if name == "native":
        return native_engine
    if name == "native-int8":
        if (device := models[0].projection.weight.device.type) != "cpu":
            what = f"native-int8 is supported on the CPU, not on {device}"
            raise ConfigError([Problem("engine", what)])
        return NativeEngine(models, listed, int8=True)
    if name == "fused":
        return _fused(models, native_engine)
    export.require()
    if problems := _ctranslate2_obstacles(models):
        raise ConfigError(problems)
    precision: Literal["int8", "float32"] = "int8" if name == "ctranslate2-int8" else "float32"
    return CTranslate2Engine(models[0], Names.of(*tokenizers), native_engine, precision)


def training_obstacles(model: ModelConfig, batch: BatchConfig) -> list[str]:
    """Why the training kernels cannot be used; empty if they can."""
    if find_spec("triton") is None:
        return [NO_TRITON]
    found = model.unlike(activation_dropout=0.0)
    # `engines.training` implements the gradients of these variants only.
    for key, known in {
        "positions": ("sinusoidal", "learned"),
        "activation": ("relu", "swish"),
        "d_k": SIZES,
        "d_v": SIZES,
    }.items():
        if getattr(model, key) not in known:
            found.append(f"model.{key} = {getattr(model, key)!r}")
    if batch.tile not in SIZES:
        found.append(f"batch.tile = {batch.tile}")
    # Imported here and below because translation does not need it.
    from transept.engines.kernels import LONGEST

    if batch.max_length >= LONGEST:
        found.append(f"batch.max_length = {batch.max_length}")
    if batch.layout != "packed":
        found.append(f"batch.layout = {batch.layout!r}")
    return found


def training_update(batch: BatchConfig) -> "Callable[..., Update]":
    """The constructor of the training step with kernels. Takes the arguments of `Update`."""
    from transept.engines.training.network import Tiles
    from transept.engines.training.update import FusedUpdate

    tiles = Tiles(batch.tile, batch.row_tiles)
    return partial(FusedUpdate, tiles=tiles, n_micro_batches=batch.micro_batches)


def _automatic(models: Sequence[Transformer]) -> str:
    on_gpu = models[0].projection.weight.is_cuda
    return "fused" if on_gpu and not _fused_obstacles(models) else "native"


def _fastest(models: Sequence[Transformer], stored: Sequence[Precision]) -> str:
    on_cpu, in_int8 = models[0].projection.weight.is_cpu, set(stored) == {"int8"}
    if on_cpu and in_int8 and export.is_installed() and not _ctranslate2_obstacles(models):
        return "ctranslate2-int8"
    return _automatic(models)


def _slow_note(name: str, models: Sequence[Transformer]) -> str:
    """A warning for users who get `native` on a GPU instead of the fast search."""
    reasons = _fused_obstacles(models)
    if name not in ("auto", "fastest") or not models[0].projection.weight.is_cuda or not reasons:
        return ""
    unsupported = ", ".join(reasons)
    return f"the fused engine does not support {unsupported}; the native engine is much slower"


def _fused(models: Sequence[Transformer], native: NativeEngine) -> Engine:
    if reasons := _fused_obstacles(models):
        what = f"fused does not support {', '.join(reasons)}; use native"
        raise ConfigError([Problem("engine", what)])
    from transept.engines.fused.engine import FusedEngine

    return FusedEngine(models[0], native)


def _fused_obstacles(models: Sequence[Transformer]) -> list[str]:
    """Why `fused` cannot search with these networks; empty if it can."""
    if len(models) > 1:
        return ["ensembles"]
    device = models[0].projection.weight.device.type
    return [f"the device {device!r}"] if device != "cuda" else fused_obstacles(models[0].config)


def fused_obstacles(config: ModelConfig) -> list[str]:
    """What `fused` does not support in a network; empty for the paper's network."""
    if find_spec("triton") is None:
        return [NO_TRITON]
    found = config.unlike(decoder_window=None)
    if config.d_k != config.d_v or config.d_k not in SIZES:
        found.append(f"model.d_k = {config.d_k}, model.d_v = {config.d_v}")
    elif config.n_heads * config.d_k != config.d_model:
        found.append(f"model.n_heads = {config.n_heads} heads of {config.d_k}")
    return found


def _ctranslate2_obstacles(models: Sequence[Transformer]) -> list[Problem]:
    """Why CTranslate2 cannot search with these networks; empty if it can."""
    if len(models) > 1:
        what = f"CTranslate2 cannot run an ensemble of {len(models)} models; use native"
        return [Problem("engine", what)]
    device = models[0].projection.weight.device.type
    if device != "cpu":
        return [Problem("engine", f"CTranslate2 is supported on the CPU, not on {device}")]
    return export.obstacles(models[0].config)
