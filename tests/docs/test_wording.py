"""The words of the project: phrases that it avoids, and terms of the field that it uses."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs/walkthrough").glob("*.py")),
    *sorted((ROOT / "docs/exercises").rglob("*.py")),
]
SOURCES = sorted((ROOT / "src").rglob("*.py")) + sorted((ROOT / "src").rglob("*.md"))

INSTEAD = {
    r"\b(?:go|goes|going|went) on\b": "continue, resume",
    r"\banew\b": "again, from scratch",
    r"\b(?:lies|lie) (?:in|on|at|below|beside|there|behind|between|next)\b": "is stored in, is in",
    r"\b(?:stands|stand|stood) (?:in|on|at|there|beside|between|together|before|after)\b": "is in",
    r"\b(?:told|tells)\b": "prints, reports, warns",
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|larger|more\b|less\b)[a-z]+": "is not a",
    r"\bso many\b": "N, at most N, the number of",
    r"\bunless given\b": "Default:",
    r"\bof (?:its|our|one's|their|your|my) own\b": "its own, built-in, custom, separate",
    r"\b(?:nobody|whoever)\b": "users, callers, or the passive voice",
    r"\b(?:under way|at work)\b": "running, in progress",
    r"\b(?:held against|let in|lets in|kept in mind)\b": "compared with, admitted, remembered",
    r"\b(?:come|comes|came) along\b": "bundled, included",
    r"\bthe peer\b": "the baseline, or its name",
    r"\bshall\b": "must",
    r"\bbesides\b": "also",
    r"\b[Ww]hat (?:is|was) (?:done|made|left)\b": "output, completed stages, the rest",
    r"\bnetwork (?:is needed|connection|is not needed)\b": "internet connection",
}
TERMS = [
    "positional encoding", "multi-head attention", "scaled dot-product attention",
    "layer normalization", "embedding matrix", "subword", "fine-tune", "inference", "sample",
    "baseline", "checkpoint", "overfit", "mixed precision", "early stopping", "autoregressive",
    "internet connection", "label smoothing", "residual connection", "beam search",
    "arxiv.org/abs/1706.03762", "Vaswani et al., 2017",
]  # fmt: skip


@pytest.mark.parametrize("phrase", INSTEAD)
def test_text_avoids_phrase(phrase: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*PAGES, *SOURCES)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(phrase, line)
    ]
    assert not found, f"write {INSTEAD[phrase]!r}:\n" + "\n".join(found)


@pytest.mark.parametrize("term", TERMS)
def test_documentation_uses_term(term: str) -> None:
    pattern = re.compile(term.replace(" ", r"\s+"), re.IGNORECASE)
    assert any(pattern.search(page.read_text(encoding="utf-8")) for page in PAGES)


def test_readme_has_at_most_900_words() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sum(1 for word in text.split() if re.search(r"\w", word)) <= 900
