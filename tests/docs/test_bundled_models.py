"""The pages on bundled models and citation agree with the models, and with the package."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import transept

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
NAMES = ["en-de", "de-en", "en-fr", "fr-en"]


def row(head: str) -> list[str]:
    (found,) = re.findall(rf"^\| {re.escape(head)} \|(.+)\|$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in found.split("|")]


@pytest.mark.parametrize("name", NAMES)
def test_page_states_the_facts_of_the_card(name: str) -> None:
    card = tomllib.loads((ROOT / f"src/transept/models/{name}/card.toml").read_text("utf-8"))
    place = row("model").index(f"`{name}`")
    assert row("parameters")[place] == f"{card['parameters']:,}"
    assert row("training")[place].startswith(f"{card['steps']:,} steps")
    assert row("recipe")[place] == f"`{card['recipe']}`"
    for score in card["results"]:
        names = ("Tatoeba", "Europarl", "Multi30k")
        title = {name.lower(): f"{name} test set" for name in names}
        test = title.get(score["test"], score["test"])
        if score["name"] == "sacreBLEU":
            head = f"sacreBLEU, {test} ({score['sentences']:,} sentences)"
            assert row(head)[place] == f"{score['value']:.1f}"
    for corpus in card["data"]:
        cells = (corpus["name"], f"{corpus['pairs']:,}", corpus["licence"], corpus["attribution"])
        assert f"| {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_results_page_are_what_the_model_translates(name: str) -> None:
    record = json.loads((ROOT / "docs/results/examples.json").read_text(encoding="utf-8"))
    model = transept.load(name, engine="native", device="cpu")
    examples = record["models"][name]
    assert len(examples) == 5
    assert {source: model.translate(source).text for source in examples} == examples


def test_citation_states_the_version() -> None:
    assert f"\nversion: {transept.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    page = (ROOT / "docs" / "citation.md").read_text(encoding="utf-8")
    assert f"version = {{{transept.__version__}}}" in page
