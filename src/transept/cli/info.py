"""`transept info`: what is installed, what it runs on, which models it knows."""

import importlib.metadata
import json
import platform
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from rich import box
from rich.console import Console
from rich.table import Table

from transept import __version__
from transept.model.config import PRESETS, ModelConfig

PACKAGES = ("torch", "numpy", "sentencepiece")
COLUMNS = ("n_layers", "d_model", "d_ff", "n_heads", "d_k", "d_v", "dropout", "positions")


def info(
    *,
    presets: Annotated[bool, Parameter(negative="")] = False,
    vocab_size: int = 37_000,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Print versions, devices and the paper's models.

    Args:
        presets: List each model with its dimensions and parameter count.
        vocab_size: The vocabulary at which parameters are counted.
        as_json: Print one JSON object instead of tables.
    """
    report = {"versions": _versions(), "devices": _devices(), "presets": list(PRESETS)}
    rows = _preset_rows(vocab_size) if presets else []
    if as_json:
        sys.stdout.write(json.dumps(report | ({"presets": rows} if presets else {})) + "\n")
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, version in report["versions"].items():
        console.print(f"{name:14} {version}")
    for device in report["devices"]:
        console.print(f"{'device':14} {device}")
    if presets:
        console.print(_preset_table(rows, vocab_size))
    else:
        console.print(f"{'presets':14} {', '.join(PRESETS)}")
        console.print("               (--presets lists them with their parameter counts)")


def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"transept": __version__, "python": platform.python_version(), **packages}


def _devices() -> list[str]:
    import torch

    cpu = f"cpu: {platform.machine()}, {torch.get_num_threads()} threads"
    gpus = [
        f"cuda:{index}: {torch.cuda.get_device_name(index)}"
        for index in range(torch.cuda.device_count())
    ]
    return [cpu, *gpus]


def _preset_rows(vocab_size: int) -> list[dict[str, Any]]:
    import torch

    from transept.model.transformer import Transformer

    rows = []
    for name in PRESETS:
        config = ModelConfig.preset(name, vocab_size=vocab_size)
        with torch.device("meta"):  # counts without computing or storing a weight
            n_parameters = Transformer(config).n_parameters()
        row = {column: getattr(config, column) for column in COLUMNS}
        rows.append({"name": name, **row, "n_parameters": n_parameters})
    return rows


def _preset_table(rows: list[dict[str, Any]], vocab_size: int) -> Table:
    title = f"Parameters at a vocabulary of {vocab_size:,}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "positions" else "right")
    table.add_column("parameters", justify="right", no_wrap=True)
    for row in rows:
        *columns, n_parameters = row.values()
        table.add_row(*map(str, columns), f"{n_parameters:,}")
    return table
