"""The files and names that CONTRIBUTING answers questions with exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "transept"


def test_every_answer_leads_to_a_file_and_a_name_in_it() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.split("## Where to look")[1].split("\n## ")[0]
    named = re.findall(r"`([a-z_0-9/]+\.(?:py|md))(?::(\w+))?`", table)
    assert len(named) > 20
    for path, symbol in named:
        where = next(
            (p for p in PACKAGE.rglob(Path(path).name) if p.as_posix().endswith(path)), None
        )
        assert where is not None, path
        assert symbol in where.read_text(encoding="utf-8"), (path, symbol)
