"""Load models, and quantize them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transept import config
from transept.api.card import Card
from transept.api.config import EngineName
from transept.api.parser import Parser
from transept.api.transducer import Transducer
from transept.checkpoint import (
    CONFIG,
    TARGET_TOKENIZER,
    TOKENIZER,
    WEIGHTS,
    Bundle,
    load_weights,
    read_about,
    tokenizers_in,
    write_directory,
)
from transept.errors import CheckpointError, ConfigError, Problem, VocabularyError
from transept.experiment import Experiment
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.quantization import Precision, Rounding, pack, unpack
from transept.runtime.device import Runtime
from transept.shelf import find_model
from transept.text.languages import pair_of
from transept.text.symbols import Symbols, Vocabulary, load_vocabulary
from transept.text.tokenizer import Tokenizer

Names = Path | str | Sequence[Path | str]


def load(
    *models: Names,
    device: str = "auto",
    engine: EngineName = "auto",
    shortlist: Path | str | None = None,
) -> Transducer:
    """Load a model that translates.

    Args:
        models: The directory of a model, a checkpoint, a run, a demo or a recipe, or the name of a
            bundled model. For a run, the newest average or the best checkpoint is used. Default:
            the default bundled model. Several models, or a list, form an ensemble and must have the
            same vocabularies.
        device: The device: `cpu`, `cuda`, `cuda:1`, or `auto`, which is a GPU if available.
        engine: The decoding engine: `native`, PyTorch in single precision; `native-int8`,
            the same on a CPU, with 8-bit integers where this machine multiplies them faster;
            `fused`, the whole search on a GPU in half precision; `ctranslate2` or
            `ctranslate2-int8`, CTranslate2 with the same weights, on a CPU. `auto` is `fused` on a
            GPU and `native` on a CPU. `fastest` is `ctranslate2-int8` on a CPU if the model is
            stored in int8 and CTranslate2 is installed, otherwise `auto`.
        shortlist: A file written by `transept data prepare --shortlist`. Restricts the output
            vocabulary to tokens that co-occurred with the source tokens in a corpus. Faster on a
            CPU. Sampling ignores the shortlist.

    Example:
        >>> transept.load("en-de").translate("Good morning.").text
        'Guten Morgen.'
    """
    model = load_any(*models, device=device, engine=engine, shortlist=shortlist)
    if isinstance(model, Parser):
        raise ConfigError(
            f"{_described(models)}: is a parsing model, which writes trees; use `load_parser` or "
            "`transept parse`"
        )
    return model


def load_parser(*models: Names, device: str = "auto") -> Parser:
    """Load a model that parses.

    Args:
        models: The directory of a model or its run. Several models form an ensemble.
        device: The device: `cpu`, `cuda`, `cuda:1`, or `auto`, which is a GPU if available.

    Example:
        >>> transept.load_parser("runs/parsing-small").parse("The cat sleeps .", beam_size=2).words
        ('The', 'cat', 'sleeps', '.')
    """
    model = load_any(*models, device=device)
    if isinstance(model, Transducer):
        raise ConfigError(
            f"{_described(models)}: is not a parsing model; use `load`. "
            "`transept train configs/parsing-small.toml` trains a parser"
        )
    return model


def load_any(
    *models: Names,
    device: str = "auto",
    engine: EngineName = "auto",
    shortlist: Path | str | None = None,
) -> Transducer | Parser:
    """Load a model of either kind; see `load`."""
    chosen = Runtime.choose(device, "fp32").device
    names: list[Path | str | None] = [*_named(models)] or [None]
    bundles = [Bundle.open(find_model(name)) for name in names]
    experiments = [config.load(Experiment, bundle.directory / CONFIG) for bundle in bundles]
    tokenizers = [_tokenizers(*pair) for pair in zip(bundles, experiments, strict=True)]
    _check_agreement(bundles, tokenizers)
    source, target = tokenizers[0]
    networks = [_network(*pair).to(chosen) for pair in zip(bundles, experiments, strict=True)]
    longest = min(experiment.batch.max_length for experiment in experiments)
    if isinstance(target, Symbols):
        if engine not in ("auto", "native"):
            raise ConfigError([Problem("engine", f"{engine!r} does not support parsing; omit it")])
        if shortlist is not None:
            raise ConfigError([Problem("shortlist", "is not supported for parsing; omit it")])
        return Parser(networks, source, target, max_source_length=longest)
    stored = [bundle.precision for bundle in bundles]
    listed = None if shortlist is None else Path(shortlist)
    chosen_engine = engines().choose(engine, networks, (source, target), stored, listed)
    return Transducer(
        networks,
        source,
        target,
        max_source_length=longest,
        engine=chosen_engine,
        languages=languages_of(bundles[0].directory),
    )


def _described(models: Sequence[Names]) -> str:
    return " + ".join(map(str, _named(models))) or "the default model"


def _named(models: Sequence[Path | str | Sequence[Path | str]]) -> list[Path | str]:
    """Flatten lists of models."""
    named: list[Path | str] = []
    for model in models:
        if isinstance(model, str | Path):
            named.append(model)
        elif isinstance(model, list | tuple) and model:
            named.extend(_named(model))
        else:
            what = f"expected the name or path of a model, got {model!r}"
            raise ConfigError([Problem("models", what)])
    return named


def _network(bundle: Bundle, experiment: Experiment) -> Transformer:
    model = Transformer.uninitialised(experiment.model)
    load_weights(model, bundle.weights(), bundle.directory)
    return model


def _tokenizers(bundle: Bundle, experiment: Experiment) -> tuple[Tokenizer, Vocabulary]:
    """The source and target vocabularies of a model."""
    source = Tokenizer.load(bundle.directory / TOKENIZER)
    own = tokenizers_in(bundle.directory).get(TARGET_TOKENIZER)
    target = load_vocabulary(own) if own else source
    if target.vocab_size != experiment.model.vocab_size:
        raise CheckpointError(
            f"{bundle.directory}: its tokenizer has {target.vocab_size} entries and its network "
            f"{experiment.model.vocab_size}: they do not belong together"
        )
    return source, target


def _check_agreement(
    bundles: Sequence[Bundle], tokenizers: Sequence[tuple[Tokenizer, Vocabulary]]
) -> None:
    """Require that the models of an ensemble have the same vocabularies."""
    for bundle, pair in zip(bundles, tokenizers, strict=True):
        for side, ours, first in zip(("source", "target"), pair, tokenizers[0], strict=True):
            if ours.sha256 != first.sha256:
                raise VocabularyError(
                    f"{bundle.directory} and {bundles[0].directory} have different {side} "
                    "vocabularies, so they cannot form an ensemble; train both with the same "
                    "tokenizer"
                )


def languages_of(directory: Path, name: Path | None = None) -> tuple[str, str]:
    """The source and the target language of a model; empty if unknown.

    Args:
        directory: Its directory. A name such as `en-de` takes precedence over card and manifest.
        name: The name by which it was found, if it is another one.
    """
    card, about = Card.load(directory), read_about(directory)
    known = [
        pair_of((name or directory).name),
        pair_of(directory.name),
        (card.source_language, card.target_language) if card else ("", ""),
        (about.get("source_language", ""), about.get("target_language", "")),
    ]
    source, target = (next((str(one[side]) for one in known if one[side]), "") for side in (0, 1))
    return source, target


@dataclass(frozen=True, slots=True)
class Quantized:
    """The result of `quantize`."""

    before: Path
    after: Path
    bytes_before: int
    """The size of the weights file."""
    bytes_after: int
    rounding: Rounding


def quantize(name: Path | str | None, precision: Precision, output: Path) -> Quantized:
    """Write a copy of a model with weights of lower precision.

    Args:
        name: A model, as for `load`.
        precision: The precision in which to store the weights.
        output: The new directory.
    """
    bundle = Bundle.open(find_model(name))
    if bundle.precision != "fp32":
        raise CheckpointError(
            f"{bundle.directory}: is already {bundle.precision}; quantize the original model"
        )
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another directory")
    weights = bundle.weights()
    packed = pack(weights, precision)
    write_directory(
        output,
        tensors={WEIGHTS: packed},
        texts={CONFIG: (bundle.directory / CONFIG).read_text(encoding="utf-8")},
        folders=tokenizers_in(bundle.directory),
        about=bundle.about,
        precision=precision,
    )
    before, after = ((path / WEIGHTS).stat().st_size for path in (bundle.directory, output))
    rounding = Rounding.between(weights, unpack(packed, precision, output))
    return Quantized(bundle.directory, output, before, after, rounding)
