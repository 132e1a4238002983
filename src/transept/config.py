"""Convert TOML to frozen dataclasses and back, strictly. This module is independent of any schema.

A config file is TOML. `extends = "other.toml"` loads another file first, and the keys of this file
replace its keys. The path is relative to the file that extends. An override such as
`model.n_heads=16` is itself a line of TOML, so files and overrides share one grammar and one
validator. All problems are reported together, each with its key and its file.
"""

import dataclasses
import difflib
import tomllib
import types
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import tomli_w

from transept.errors import ConfigError, Problem

T = TypeVar("T")
Origins = dict[str, str]
"""The file, or the command line, that set each dotted key; under "", the file that was read."""


def load(schema: type[T], path: Path | str, overrides: Sequence[str] = ()) -> T:
    """Read a TOML file and apply overrides. Return an instance of the dataclass `schema`."""
    origins: Origins = {"": str(path)}
    data = _read(Path(path), origins, seen=())
    for override in overrides:
        _merge(data, _parse_override(override), f"command line ({override})", origins)
    return structure(schema, data, origins)


def keys(path: Path | str) -> set[str]:
    """The top-level keys of a TOML file, with those of the files it extends."""
    return set(_read(Path(path), {}, seen=()))


def changes(path: Path | str) -> list[str]:
    """The values in a TOML file, without those of the file it extends, as overrides."""
    values = _parse(Path(path), "check the path")
    values.pop("extends", None)
    return [
        f"{key}={tomli_w.dumps({'x': value}).partition('=')[2].strip()}"
        for key, value in _leaves(values)
    ]


def structure(schema: type[T], data: Mapping[str, Any], origins: Origins | None = None) -> T:
    """Convert nested tables to the dataclass `schema`. One error lists every problem."""
    problems: list[Problem] = []
    value = _dataclass(schema, data, "", problems)
    if problems:
        raise ConfigError([_with_origin(problem, origins or {}) for problem in problems])
    return typing.cast(T, value)


def dump(config: Any) -> str:
    """Write a config as TOML that `load` reads back to an equal config."""
    return tomli_w.dumps(as_table(config))


def as_table(config: Any) -> dict[str, Any]:
    """A config as nested dictionaries of TOML values. Fields that are None are omitted."""
    table = {}
    for field in dataclasses.fields(config):
        value = _plain(getattr(config, field.name))
        if value is not None:
            table[field.name] = value
    return table


def differences(old: Any, new: Any, ignore: Container[str] = ()) -> list[str]:
    """Describe the keys in which two configs differ, except `ignore`, one line per key."""
    before, after = dict(_leaves(as_table(old))), dict(_leaves(as_table(new)))
    return [
        f"{key}: {before.get(key, 'unset')} -> {after.get(key, 'unset')}"
        for key in sorted(before.keys() | after.keys())
        if key not in ignore and before.get(key) != after.get(key)
    ]


class Checks:
    """Collects the problems of a config's values, to report them together."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self._problems: list[Problem] = []

    def that(self, right: bool, key: str, otherwise: str) -> None:
        """Record a problem with `key` unless `right`."""
        if not right:
            value = getattr(self._config, key)
            self._problems.append(Problem(key, f"{value!r} {otherwise}"))

    def each(self, right: Callable[[Any], bool], key: str, otherwise: str) -> None:
        """Record a problem for each item of `key` that is not right."""
        wrong = [item for item in getattr(self._config, key) if not right(item)]
        self._problems += [Problem(key, f"{item!r} {otherwise}") for item in wrong]

    def at_least(self, least: float, *keys: str) -> None:
        """Require each of these values to be at least `least`."""
        for key in keys:
            self.that(getattr(self._config, key) >= least, key, f"must be at least {least}")

    def fraction(self, *keys: str) -> None:
        """Require each of these values to be in [0, 1)."""
        for key in keys:
            value = getattr(self._config, key)
            self.that(0 <= value < 1, key, "must be at least 0 and less than 1")

    def done(self) -> None:
        """Raise a ConfigError if there are problems."""
        if self._problems:
            raise ConfigError(self._problems)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to a misspelt one, or list the known names."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if names else "there are none"


# --- reading ---------------------------------------------------------------------------------


def _read(path: Path, origins: Origins, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Read one file and the files it extends."""
    resolved = path.resolve()
    if resolved in seen:
        chain = " -> ".join(str(p) for p in (*seen, resolved))
        raise ConfigError([Problem("extends", f"is circular: {chain}", str(path))])
    data = _parse(path, "check the path" if seen == () else f"check `extends` in {seen[-1]}")
    parent = data.pop("extends", None)
    if parent is None:
        base: dict[str, Any] = {}
    elif isinstance(parent, str):
        base = _read(path.parent / parent, origins, (*seen, resolved))
    else:
        raise ConfigError([Problem("extends", "must be the path of one file", str(path))])
    _merge(base, data, str(path), origins)
    return base


def _parse(path: Path, cure: str) -> dict[str, Any]:
    """Read one file."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        what = f"cannot be read ({error.strerror}); {cure}"
        raise ConfigError([Problem("", what, str(path))]) from error
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 text (byte {error.start})"
        raise ConfigError([Problem("", what, str(path))]) from error
    except tomllib.TOMLDecodeError as error:
        what = f"is not valid TOML: {error}"
        raise ConfigError([Problem("", what, str(path))]) from error


def _merge(base: dict[str, Any], over: Mapping[str, Any], origin: str, origins: Origins) -> None:
    """Merge `over` into `base`: tables are merged, other values are replaced."""

    def merge(below: dict[str, Any], above: Mapping[str, Any], prefix: str) -> None:
        for key, value in above.items():
            origins[f"{prefix}{key}"] = origin
            if isinstance(value, dict) and isinstance(below.get(key), dict):
                merge(below[key], value, f"{prefix}{key}.")
            elif isinstance(value, dict):
                below[key] = {}
                merge(below[key], value, f"{prefix}{key}.")
            else:
                below[key] = value

    merge(base, over, "")


def _parse_override(override: str) -> dict[str, Any]:
    """Parse an override: a line of TOML, or with a bare word as string (`model.norm=pre`)."""
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError([Problem(override, "is not of the form key=value", "command line")])
    for text in (override, f"{key}={tomli_w.dumps({'x': value}).partition('=')[2]}"):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError([Problem(override, "is not of the form key=value", "command line")])


def _with_origin(problem: Problem, origins: Origins) -> Problem:
    """Add the file that set the nearest enclosing key."""
    key = problem.key
    while key and key not in origins:
        key = key[: max(key.rfind("."), key.rfind("["), 0)]
    return dataclasses.replace(problem, origin=origins.get(key))


# --- structuring -----------------------------------------------------------------------------


def _dataclass(schema: type[Any], data: Any, key: str, problems: list[Problem]) -> Any:
    """Return an instance of `schema`, or record problems and return None."""
    if not isinstance(data, Mapping):
        problems.append(Problem(key, f"expected a table, got {data!r}"))
        return None
    hints = typing.get_type_hints(schema)
    fields = {field.name: field for field in dataclasses.fields(schema) if field.init}
    before = len(problems)
    values = {}
    for name, value in data.items():
        if name in fields:
            values[name] = _value(hints[name], value, _join(key, name), problems)
        else:
            problems.append(Problem(_join(key, name), f"unknown key; {did_you_mean(name, fields)}"))
    for name, field in fields.items():
        if name not in data and _required(field):
            problems.append(Problem(_join(key, name), "is missing and has no default"))
    if len(problems) > before:
        return None
    try:
        return schema(**values)
    except ConfigError as error:
        problems.extend(problem.below(key) if key else problem for problem in error.problems)
        return None


def _value(hint: Any, value: Any, key: str, problems: list[Problem]) -> Any:
    """Convert `value` to the type `hint`, or record a problem and return None."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value == "none" and type(None) in arguments:
            return None
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return _value(hint, value, key, problems)
    if dataclasses.is_dataclass(hint):
        return _dataclass(typing.cast(type[Any], hint), value, key, problems)
    if origin is tuple:
        return _sequence(arguments, value, key, problems)
    if origin is dict:
        return _mapping(arguments[1], value, key, problems)
    if origin is Literal:
        return _choice(arguments, value, key, problems)
    return _scalar(hint, value, key, problems)


def _choice(choices: tuple[Any, ...], value: Any, key: str, problems: list[Problem]) -> Any:
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        problems.append(Problem(key, f"{value!r} is not one of {listed}"))
    return value


def _mapping(hint: Any, value: Any, key: str, problems: list[Problem]) -> Any:
    if not isinstance(value, Mapping):
        problems.append(Problem(key, f"expected a table, got {value!r}"))
        return None
    return {name: _value(hint, item, _join(key, name), problems) for name, item in value.items()}


def _sequence(arguments: tuple[Any, ...], value: Any, key: str, problems: list[Problem]) -> Any:
    """`tuple[X, ...]` of any length, or `tuple[X, Y]` of that length. One text is a list of it."""
    if arguments == (str, ...) and isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        problems.append(Problem(key, f"expected a list{_example(arguments[0])}, got {value!r}"))
        return None
    any_length = len(arguments) == 2 and arguments[1] is Ellipsis
    if not any_length and len(value) != len(arguments):
        problems.append(Problem(key, f"expected {len(arguments)} values, got {len(value)}"))
        return None
    hints = [arguments[0]] * len(value) if any_length else arguments
    items = [
        _value(hint, item, f"{key}[{index}]", problems)
        for index, (hint, item) in enumerate(zip(hints, value, strict=True))
    ]
    return tuple(items)


def _example(hint: Any) -> str:
    """An example of a list of tables, with their required keys."""
    if not dataclasses.is_dataclass(hint):
        return ""
    needed = [field.name for field in dataclasses.fields(hint) if _required(field)]
    return f", such as [{{{', '.join(f'{name}=…' for name in needed)}}}]"


def _scalar(hint: Any, value: Any, key: str, problems: list[Problem]) -> Any:
    # bool is a subclass of int in Python, but `n_heads = true` is a mistake.
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, hint) and not (hint in (int, float) and isinstance(value, bool)):
        return value
    problems.append(Problem(key, f"expected {hint.__name__}, got {value!r}"))
    return None


def _required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return as_table(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            for index, item in enumerate(value):
                yield from _leaves(item, f"{prefix}{key}[{index}].")
        else:
            yield f"{prefix}{key}", value
