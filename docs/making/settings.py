"""The config reference: every key of an experiment and of a recipe."""

import dataclasses
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from making.docstrings import to_markdown
from making.fields import cell, docs_of, type_name
from transept.apps.recipes.recipe import Recipe
from transept.experiment import Experiment

PAPER: Final = {
    "model.vocab_size": "5.1",
    "model.source_vocab_size": "5.1",
    "model.n_layers": "3.1: N",
    "model.d_model": "3.1",
    "model.d_ff": "3.3, equation (2)",
    "model.n_heads": "3.2.2: h",
    "model.d_k": "3.2.1, Table 3 (B)",
    "model.d_v": "3.2.1",
    "model.dropout": "5.4: P_drop",
    "model.norm": "3.1",
    "model.positions": "3.5, Table 3 (E)",
    "model.tied_embeddings": "3.4",
    "model.activation": "3.3",
    "model.attention_bias": "3.2.2",
    "model.output_bias": "3.4",
    "model.encoder_window": "4: r",
    "model.decoder_window": "4: r",
    "data.train": "5.1",
    "batch.source_tokens": "5.1",
    "batch.target_tokens": "5.1",
    "batch.layout": "5.1",
    "loss.label_smoothing": "5.4: ε_ls",
    "loss.smoothing": "5.4",
    "schedule.warmup_steps": "5.3, equation (3)",
    "schedule.factor": "5.3, equation (3)",
    "adam.beta1": "5.3: β₁",
    "adam.beta2": "5.3: β₂",
    "adam.epsilon": "5.3: ε",
    "training.max_steps": "5.2",
    "checkpoint.every_minutes": "6.1",
    "checkpoint.every_share": "6.1",
    "checkpoint.keep": "6.1",
    "vocabulary.kind": "5.1",
    "average.last": "6.1",
    "average.interval": "6.1",
    "search.beam_size": "6.1",
    "search.length_penalty": "6.1: α",
    "search.max_length_factor": "6.1",
    "search.max_length_extra": "6.1",
}
"""The section of the paper that sets a key. Other keys are not in the paper."""

EXPERIMENT: Final = """# Config keys

An experiment is a TOML file, such as those in `configs/`. Each table below is a table of that file.
A key can be overridden on the command line: `transept train configs/base.toml model.n_heads=16`.
`extends = "other.toml"` reads another file first. `transept info FILE` prints a config with all
defaults.

`make docs` writes this page from the dataclasses that read the file. *Paper* is the section of
[the paper](https://arxiv.org/abs/1706.03762) that a key belongs to. A key without a section is not
in the paper. A key with an empty default is optional."""

RECIPE: Final = """# Recipe keys

A recipe is a TOML file that `transept recipe run` reads. It describes an experiment from text to
scores. Its table `[experiment]` has the [config keys](config.md)."""


def write_settings(folder: Path) -> None:
    """The page of an experiment's keys and the page of a recipe's."""
    pages = {
        "config.md": [EXPERIMENT, *_tables(Experiment)],
        "recipe-config.md": [RECIPE, *_tables(Recipe, leave_out=Experiment)],
    }
    for name, parts in pages.items():
        (folder / name).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def keys(schema: Any, prefix: str = "") -> Iterator[str]:
    """Every key of a config, dotted."""
    for name, (_, hint) in _fields(schema).items():
        inner, many = _table_of(hint)
        if inner is None:
            yield f"{prefix}{name}"
        else:
            yield from ([f"{prefix}{name}"] if many else [])
            yield from keys(inner, f"{prefix}{name}.")


def _tables(schema: Any, leave_out: type | None = None, prefix: str = "") -> Iterator[str]:
    """The plain keys of a dataclass as a table, then the tables below it."""
    rows, below = [], []
    docs = docs_of(schema)
    for name, (field, hint) in _fields(schema).items():
        inner, many = _table_of(hint)
        if inner is not None and inner is not leave_out:
            below.append((f"{prefix}{name}", inner, many))
        if inner is None or many:
            default = _default(field)
            kind = "list of tables" if inner is not None else type_name(hint)
            paper = PAPER.get(f"{prefix}{name}", "")
            rows.append(
                f"| `{prefix}{name}` | {cell(kind)} | {default} | {cell(docs[name])} | {paper} |"
            )
    if rows:
        head = ["| key | type | default | meaning | paper |", "|---|---|---|---|---|"]
        yield "\n".join([*head, *rows])
    for name, inner, many in below:
        yield f"## `{'[[' if many else '['}{name}{']]' if many else ']'}`"
        yield to_markdown((inspect.getdoc(inner) or "").split("\n\nExample:")[0])
        yield from _tables(inner, leave_out, f"{name}.")


def _fields(schema: Any) -> dict[str, tuple["dataclasses.Field[Any]", Any]]:
    hints = typing.get_type_hints(schema)
    return {field.name: (field, hints[field.name]) for field in dataclasses.fields(schema)}


def _table_of(hint: Any) -> tuple[Any, bool]:
    """The dataclass that a key holds, if any, and whether it holds a list of them."""
    arguments = typing.get_args(hint)
    inner = arguments[0] if typing.get_origin(hint) is tuple else hint
    optional = [one for one in typing.get_args(inner) if dataclasses.is_dataclass(one)]
    inner = optional[0] if optional else inner
    if not dataclasses.is_dataclass(inner):
        return None, False
    return inner, inner is not hint and not optional


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
        return "required"
    value = field.default
    if value is dataclasses.MISSING or value is None or value in ((), ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and 0 < value < 1 and round(1 / value) * value == 1:
        return f"`1/{round(1 / value)}`" if round(1 / value) > 20 else f"`{value}`"
    return f"`{value:,}`" if isinstance(value, int) and value >= 10_000 else f"`{value}`"
