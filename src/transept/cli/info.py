"""`transept info`: describe a model, run, corpus or config, or the installation."""

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from transept import config
from transept.cli.app import Flag
from transept.cli.train import load_experiment
from transept.errors import ConfigError
from transept.model.config import LABEL_SMOOTHING, PAPER_PARAMETERS, PRESETS, ModelConfig
from transept.runtime.interrupt import import_torch
from transept.version import __version__

PACKAGES = ("torch", "numpy", "sentencepiece", "safetensors", "sacrebleu")
COLUMNS = {
    "N": "n_layers",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "h": "n_heads",
    "d_k": "d_k",
    "d_v": "d_v",
    "P_drop": "dropout",
    "ε_ls": "label_smoothing",
    "parameters": "n_parameters",
    "paper": "paper_millions",
}
"""Column headings of the table of presets, mostly from Table 3, and the keys of their values."""
CORPUS = Parameter(group=Group("Corpus", sort_key=2))


def info(
    path: Path | None = None,
    /,
    *overrides: str,
    presets: Flag = False,
    vocab_size: int = 37_000,
    samples: Annotated[int, CORPUS] = 5,
    verify: Annotated[Flag, CORPUS] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Describe a model, run, corpus or config, or this installation.

    Without a path, print the versions, devices, bundled models, and presets (the models of the
    paper). A config is printed in full, with the values it extends, overrides and defaults.

    Args:
        path: The directory of a run, a checkpoint or a model (all files are verified), the name of
            a bundled model, a corpus made by `transept data prepare`, or the TOML file of an
            experiment.
        overrides: Changes to the TOML file, in the form key=value: `model.n_heads=16`.
        presets: List the paper's models with their dimensions and label smoothing, their parameter
            counts, and the counts in Table 3 of the paper.
        vocab_size: The vocabulary size for these parameter counts.
        samples: The number of pairs of a corpus to print.
        verify: Verify the sha256 of every file of a corpus first.
        as_json: Print one JSON object instead of text and tables.
    """
    if path is not None and (path.is_file() or path.suffix == ".toml"):
        _describe_config(path, overrides, as_json)
    elif overrides:
        raise ConfigError(f"{overrides[0]}: overrides are for a config file, and {path} is not one")
    elif path is not None and _is_corpus(path):
        _describe_corpus(path, samples, verify, as_json)
    elif path is not None:
        _describe_model(path, as_json)
    else:
        _describe_installation(presets, vocab_size, as_json)


def _is_corpus(path: Path) -> bool:
    from transept.data.shards import IDS, OFFSETS

    return any((path / name).exists() for name in (*IDS.values(), *OFFSETS.values()))


def _describe_config(path: Path, overrides: Sequence[str], as_json: bool) -> None:
    experiment = load_experiment(path, overrides)
    if as_json:
        sys.stdout.write(json.dumps(config.as_table(experiment)) + "\n")
    else:
        sys.stdout.write(config.dump(experiment))


def _describe_corpus(path: Path, samples: int, verify: bool, as_json: bool) -> None:
    from transept.cli.data_views import describe_corpus, show_corpus
    from transept.data.shards import Corpus

    if samples < 0:
        raise ConfigError("--samples must be at least 0")
    report = describe_corpus(Corpus.open(path, verify=verify), samples)
    if as_json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        show_corpus(report)


def _describe_installation(presets: bool, vocab_size: int, as_json: bool) -> None:
    import_torch()
    from transept.runtime.device import describe_devices
    from transept.shelf import shipped_models

    versions, devices, shipped = _versions(), describe_devices(), [*shipped_models()]
    rows = _preset_rows(vocab_size) if presets else []
    if as_json:
        listed = rows if presets else [*PRESETS]
        report = {"versions": versions, "devices": devices, "models": shipped, "presets": listed}
        sys.stdout.write(json.dumps(report) + "\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, version in versions.items():
        console.print(f"{name:14} {version}")
    for device in devices:
        console.print(f"{'device':14} {device}")
    console.print(f"{'models':14} {', '.join(shipped) or 'none'}")
    if presets:
        console.print(_preset_table(rows, vocab_size))
    else:
        console.print(f"{'presets':14} {', '.join(PRESETS)}")
        console.print("               (--presets lists them with their parameter counts)")


def _describe_model(path: Path, as_json: bool) -> None:
    import_torch()
    from transept.api.card import Card
    from transept.assembly import describe
    from transept.checkpoint import origin_of
    from transept.shelf import find_model, model_of

    if not path.is_dir():
        path = find_model(path)
    report, card = describe(path), Card.load(path)
    if "run" in report:
        report = {"run": report["run"], "used by --model": str(model_of(path))} | report
    if as_json:
        carded = report if card is None else {**report, "card": config.as_table(card)}
        sys.stdout.write(json.dumps(carded) + "\n")
        return
    if card is not None:
        sys.stdout.write(f"{card.markdown()}\n")
        shown = ("parameters", "stored in", "bytes", "verified")
        report = {"directory": str(path)} | {name: report[name] for name in shown}
    elif origin := origin_of(report["made by"]):
        others = {key: fact for key, fact in report["made by"].items() if key not in origin}
        named = {key.replace("_", " "): fact for key, fact in origin.items()}
        report = {**named, **report, "made by": others}
    console = Console(highlight=False, soft_wrap=True)
    rows = list(_rows(report))
    width = max(len(name) for name, _ in rows) + 2
    for name, text in rows:
        console.print(f"{name:{width}}{text}".rstrip(), markup=False)


def _rows(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and values. The entries of a table are indented below its name."""
    for name, value in report.items():
        if isinstance(value, dict) and value:
            yield name, ""
            for key, item in value.items():
                yield f"  {key}", _shown(item)
        else:
            yield name, _shown(value)


def _shown(value: Any) -> str:
    """A readable value: `true` as in TOML, but tables and lists without brackets."""
    match value:
        case None | []:
            return "none"
        case dict():
            return ", ".join(f"{key} {_shown(item)}" for key, item in value.items()) or "none"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
        case list():
            return ("; " if isinstance(value[0], dict) else ", ").join(map(_shown, value))
    return str(value)


def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"transept": __version__, "python": platform.python_version(), **packages}


def _preset_rows(vocab_size: int) -> list[dict[str, Any]]:
    import torch

    from transept.model.transformer import Transformer

    rows = []
    for name in PRESETS:
        preset = ModelConfig.preset(name, vocab_size=vocab_size)
        with torch.device("meta"):  # counts parameters without allocating them
            n_parameters = Transformer(preset).n_parameters()
        values = asdict(preset) | {
            "label_smoothing": LABEL_SMOOTHING[name],
            "n_parameters": n_parameters,
            "paper_millions": PAPER_PARAMETERS.get(name),
        }
        rows.append({"name": name} | {column: values[column] for column in COLUMNS.values()})
    return rows


def _preset_table(rows: list[dict[str, Any]], vocab_size: int) -> Table:
    title = f"Parameters at a vocabulary of {vocab_size:,}, and the paper's count in millions"
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        shown = {"n_parameters": f"{row['n_parameters']:,}"}
        if row["paper_millions"] is None:
            shown["paper_millions"] = ""
        table.add_row(*map(str, (row | shown).values()))
    return table
