"""The printed report of parse scores."""

import dataclasses
import io
import json

from rich.console import Console

from transept.apps.parse.evalb import show_report, warnings
from transept.evaluation.parse_report import ParseReport, evaluate_parses

CAT = "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"


def report(*predicted: str) -> ParseReport:
    return evaluate_parses([CAT] * len(predicted), predicted)


def shown(one: ParseReport) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False, markup=False)
    show_report(console, one, "gold.clean", "predicted.clean")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_report_shows_both_summaries_side_by_side() -> None:
    text = shown(report(CAT, CAT.replace("cat", "dog"), ""))
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert "gold gold.clean, 3 sentences" in lines
    assert "all sentences at most 40 words" in lines
    assert "evalb whole evalb whole" in lines
    assert "F1 100.00 40.00 100.00 40.00" in lines
    assert "precision 100.00 50.00 100.00 50.00" in lines
    assert "average crossing 0.00 0.00" in lines
    assert {"valid 1 1", "errors 1 1", "skipped 1 1"} <= lines
    assert "params:COLLINS|" in text


def test_report_columns_are_aligned() -> None:
    lines = shown(report(CAT)).splitlines()
    header = next(line for line in lines if "evalb  " in line)
    f1 = next(line for line in lines if line.startswith("F1"))
    ends = [header.index("evalb") + 5, header.index("whole") + 5]
    assert [f1[:end][-6:] for end in ends] == ["100.00", "100.00"]


def test_report_as_json_has_all_fields() -> None:
    described = json.loads(json.dumps(dataclasses.asdict(report(CAT, ""))))
    assert described["all"]["evalb"]["f1"] == 100.0
    assert described["all"]["whole"]["recall"] == 50.0
    assert [each["status"] for each in described["sentences"]] == ["valid", "skipped"]


def test_warnings_give_line_numbers() -> None:
    assert warnings(report(CAT), "gold") == []
    (trouble,) = warnings(report(CAT, CAT[:-1], CAT.replace("cat", "dog")), "gold")
    assert trouble == (
        "trees that do not match: unbalanced brackets (1), words differ (1); see line 2, 3"
    )
    assert "evalb itself would have stopped at line 2" in warnings(report(CAT, "hello"), "gold")[1]


def test_warnings_report_damaged_gold_trees_separately() -> None:
    both = evaluate_parses([CAT, CAT[:-1]], [CAT[:-1], CAT])
    assert [each.gold_problems for each in both.sentences] == [(), ("unbalanced brackets",)]
    first, second = warnings(both, "test.mrg")
    assert first.startswith("test.mrg: malformed gold trees: 1, the first")
    assert "in line 2" in first
    assert "unbalanced brackets (2); see line 1, 2" in second
