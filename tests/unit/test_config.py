from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest

from transept import config
from transept.config import Checks
from transept.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: int = 4
    share: float = 0.5
    kind: Literal["a", "b"] = "a"
    betas: tuple[float, float] = (0.9, 0.98)
    paths: tuple[Path, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "size")
        checks.fraction("share")
        checks.done()


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    inner: Inner = field(default_factory=Inner)
    weights: dict[str, float] = field(default_factory=dict)
    several: tuple[Inner, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Several:
    outers: tuple[Outer, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Outmost:
    outer: Outer


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def problems(error: pytest.ExceptionInfo[ConfigError]) -> dict[str, str]:
    return {problem.key: problem.what for problem in error.value.problems}


def test_load_merges_file_parents_and_overrides(tmp_path: Path) -> None:
    write(tmp_path / "base.toml", 'name = "base"\n[inner]\nsize = 1\nshare = 0.25\nlimit = 3')
    (tmp_path / "deep").mkdir()
    child = write(tmp_path / "deep/child.toml", 'extends = "../base.toml"\n[inner]\nsize = 2')
    loaded = config.load(
        Outer, child, ["inner.kind=b", "inner.betas=[0.8, 1]", "name=other", "inner.limit=none"]
    )
    assert loaded == Outer(
        name="other", inner=Inner(size=2, share=0.25, kind="b", betas=(0.8, 1.0), limit=None)
    )


def test_dumped_config_loads_to_an_equal_config(tmp_path: Path) -> None:
    original = Outer(
        name='quo"te\n',
        inner=Inner(paths=(Path("a/b"), Path("c")), limit=7, betas=(0.1, 1e-9)),
        weights={"europarl": 1.0, "with space": 0.5},
    )
    assert config.load(Outer, write(tmp_path / "x.toml", config.dump(original))) == original


def test_load_reports_all_problems_with_key_and_file(tmp_path: Path) -> None:
    base = write(tmp_path / "base.toml", "nme = 'x'\n[inner]\nsize = 'four'")
    child = write(
        tmp_path / "child.toml",
        'extends = "base.toml"\n[inner]\nkind = "c"\nshare = true\nbetas = [1.0]\nqqq = 1',
    )
    with pytest.raises(ConfigError) as error:
        config.load(Outer, child, ["inner.limit=many"])
    assert problems(error) == {
        "name": "is missing and has no default",
        "nme": "unknown key; did you mean 'name'?",
        "inner.size": "expected int, got 'four'",
        "inner.kind": "'c' is not one of 'a', 'b'",
        "inner.share": "expected float, got True",
        "inner.betas": "expected 2 values, got 1",
        "inner.limit": "expected int, got 'many'",
        "inner.qqq": "unknown key; known: size, share, kind, betas, paths, limit",
    }
    origins = {problem.key: problem.origin for problem in error.value.problems}
    assert origins["name"] == str(child)
    assert origins["inner.size"] == str(base)
    assert origins["inner.kind"] == str(child)
    assert origins["inner.limit"] == "command line (inner.limit=many)"


def test_problem_in_a_list_has_the_origin_of_the_list(tmp_path: Path) -> None:
    path = write(tmp_path / "x.toml", "outer = {name = 'x', several = [{}, {sise = 1}]}")
    with pytest.raises(ConfigError) as error:
        config.load(Outmost, path, ["outer.inner.size=2", "outer.weights={'a[0]' = 'much'}"])
    assert {problem.key: problem.origin for problem in error.value.problems} == {
        "outer.several[1].sise": str(path),
        "outer.weights.a[0]": "command line (outer.weights={'a[0]' = 'much'})",
    }


def test_values_rejected_by_a_class_are_reported_with_dotted_key(tmp_path: Path) -> None:
    path = write(tmp_path / "x.toml", "name = 'x'\n[inner]\nsize = 0\nshare = 1.0")
    with pytest.raises(ConfigError) as error:
        config.load(Outer, path)
    assert problems(error) == {
        "inner.size": "0 must be at least 1",
        "inner.share": "1.0 must be at least 0 and less than 1",
    }
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a = = 1", "is not valid TOML"),
        ("extends = 'loop.toml'", "is circular"),
        ("extends = 3", "must be the path of one file"),
        ("extends = 'absent.toml'", "cannot be read"),
        ("inner = 3\nname = 'x'", "expected a table, got 3"),
        ("name = 'x'\nweights = 3", "expected a table, got 3"),
        ("name = 'x'\n[inner]\npaths = 'a'", "expected a list, got 'a'"),
    ],
)
def test_load_rejects_invalid_files(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as error:
        config.load(Outer, write(tmp_path / "loop.toml", text))
    assert "loop.toml" in str(error.value)


def test_load_rejects_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        config.load(Outer, tmp_path / "x.toml")


@pytest.mark.parametrize("override", ["inner.size", "=3", "inner..size=3", " = "])
def test_load_rejects_override_without_key_or_value(tmp_path: Path, override: str) -> None:
    path = write(tmp_path / "x.toml", "name = 'x'")
    with pytest.raises(ConfigError, match="is not of the form key=value"):
        config.load(Outer, path, [override])


def test_error_for_list_of_tables_shows_an_example() -> None:
    with pytest.raises(ConfigError) as error:
        config.structure(Several, {"outers": "x", "sizes": 3})
    assert problems(error) == {
        "outers": "expected a list, such as [{name=…}], got 'x'",
        "sizes": "expected a list, got 3",
    }


def test_differences_are_listed_key_by_key() -> None:
    old = Outer(name="x", inner=Inner(size=1))
    new = Outer(name="x", inner=Inner(size=2, limit=5))
    assert config.differences(old, new) == ["inner.limit: unset -> 5", "inner.size: 1 -> 2"]
    assert config.differences(old, old) == []


def test_differences_in_a_list_of_tables_have_an_index() -> None:
    old = Outer(name="x", several=(Inner(size=1), Inner(size=2)))
    new = Outer(name="x", several=(Inner(size=1), Inner(size=3)))
    assert config.differences(old, new) == ["several[1].size: 2 -> 3"]
    assert "several[1].size: 2 -> unset" in config.differences(
        old, replace(old, several=(Inner(),))
    )
