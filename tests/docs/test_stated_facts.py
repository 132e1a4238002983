"""Facts that the documentation states in words, compared with the files that they are about."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from transept.apps.recipes import recipe

ROOT = Path(__file__).parents[2]
KINDS = {"bpe": "byte pairs", "unigram": "a unigram language model"}


@pytest.mark.parametrize("name", ["wmt14-en-fr-big", "europarl-en-fr-base"])
def test_deviations_name_the_vocabulary_of_english_french_recipes(name: str) -> None:
    rows = (ROOT / "docs/deviations.md").read_text(encoding="utf-8").splitlines()
    (row,) = (row for row in rows if "word pieces for English-French" in row)
    ours = row.split("|")[2].strip()
    assert ours.startswith(KINDS[recipe.load(name).vocabulary.kind])


def test_changelog_states_the_number_of_walkthrough_chapters() -> None:
    chapters = list((ROOT / "docs/walkthrough").glob("[0-9]*.py"))
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"in {len(chapters)} chapters" in text


SIZING = (ROOT / "docs/guides/train.md").read_text(encoding="utf-8")
RECORDED = re.findall(r"^\|.*\(\.\./results/(.+?)\.json\).*$", SIZING, re.MULTILINE)


def sacre_bleu(record: dict[str, Any], test: str) -> float:
    (system,) = record["stages"]["score"]["results"]["tests"][test]["systems"]
    scores = {score["convention"]["name"]: score["value"] for score in system["scores"]}
    return float(scores["sacreBLEU"])


@pytest.mark.parametrize("name", RECORDED)
def test_sizing_table_has_pairs_minutes_and_bleu_of_its_record(name: str) -> None:
    (row,) = (line for line in SIZING.splitlines() if f"(../results/{name}.json)" in line)
    pairs, model, hardware, training, _, bleu, _ = (cell.strip() for cell in row.split("|")[1:-1])
    record = json.loads((ROOT / f"docs/results/{name}.json").read_text(encoding="utf-8"))
    stages = {stage: record["stages"][stage]["results"] for stage in ("prepare", "train")}
    corpora = stages["prepare"]["corpora"].items()
    read = sum(corpus["pairs"] for key, corpus in corpora if key != "dev") / 1e6
    assert float(pairs.removesuffix(" M")) == pytest.approx(read, rel=0.02)
    minutes = stages["train"]["seconds"] / 60
    assert float(training.removesuffix(" min")) == pytest.approx(minutes, abs=0.05)
    for score, test in re.findall(r"([\d.]+), (\w+)", bleu):
        assert score == f"{sacre_bleu(record, test.lower()):.1f}"
    assert hardware == "one H200"
    d_model = re.search(r"d_model (\d+)", model)
    width = {"base": 512, "big": 1024}.get(re.split(r"\W", model)[0])
    assert record["recipe"]["experiment"]["model"]["d_model"] == (
        int(d_model[1]) if d_model else width
    )


def test_estimates_of_the_sizing_table_follow_from_the_measured_rates() -> None:
    rows = json.loads((ROOT / "benchmarks/results/gpu_training.json").read_text())["rows"]
    ours = {(row["work"], row["unit"]): row["value"] for row in rows if row["system"] == "transept"}
    for size, steps, stated in (("base", 100_000, "41 min"), ("big", 300_000, "5.4 h")):
        rate = ours[size, "target tokens/s"]
        assert f"{rate:,.0f}" in SIZING
        hours = steps * 25_000 / rate / 3600
        expected = f"{hours:.1f} h" if hours > 1 else f"{60 * hours:.0f} min"
        assert expected == stated
        assert re.search(rf"{size}, {steps:,} steps \| one H200 \| {stated}", SIZING)
    assert f"{ours['base', 'GiB peak']:.0f} GiB" in SIZING
    assert f"{ours['big', 'GiB peak']:.1f} GiB" in SIZING
