"""`benchmarks/table4.py`: its rows are configs, and its record fills the tables of the docs."""

import importlib
import json
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from transept import config
from transept.experiment import Experiment

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def modules() -> dict[str, ModuleType]:
    names = ("measuring", "table4", "tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return {name: importlib.import_module(name) for name in names}


def test_each_row_has_a_config_whose_corpus_has_its_tags(modules: dict[str, ModuleType]) -> None:
    files = {path.stem: path for path in (ROOT / "configs" / "table4").glob("*.toml")}
    settings = modules["table4"].SETTINGS
    assert files.keys() == settings.keys()
    for name, file in files.items():
        data = config.load(Experiment, file).data
        tags = settings[name].tags
        assert [corpus.path for corpus in data.train] == [Path("data/craft", tags, "train")]
        assert data.dev == Path("data/craft", tags, "dev")


def test_short_table_has_a_line_per_row_of_the_record(
    modules: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, tables = modules["measuring"].Row.once, modules["tables"]
    rows = [once("test", "the paper's setting", 12.34, "F1"),
            once("training", "the paper's setting", 6.5, "minutes"),
            once("training", "the paper's setting", 9000, "steps"),
            once("test", "named words", 56.78, "F1")]  # fmt: skip
    record = {"rows": [asdict(row) for row in rows]}
    (tmp_path / "table4.json").write_text(json.dumps(record))
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    page = "<!-- table4 rows -->\n<!-- /table4 -->\n"
    filled = tables.MARKERS.sub(tables._filled, page)
    assert "| the paper's setting | 12.3 |  | 6.5 |\n| named words | 56.8 |  |  |\n" in filled
