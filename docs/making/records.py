"""The records of trained models that the pages of results are written from."""

import hashlib
import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

SPLIT: Final = "tokenised BLEU, compounds split"
"""The paper's convention."""
OURS: Final = "transept"
MARIAN: Final = "Hugging Face MarianMT"
UP: Final = "../"
"""The way from the log to the directory that holds the records' directory."""

Record = Mapping[str, Any]


class Published(NamedTuple):
    """A system of the paper: BLEU on newstest2014 and FLOPs (Table 2), scores of dev (Table 3)."""

    bleu: float
    flops: float
    dev: str = " | "


PAPER: Final = {
    "en-de base": Published(27.3, 3.3e18, "25.8 | 4.92"),
    "en-de big": Published(28.4, 2.3e19, "26.4 | 4.33"),
    "en-fr base": Published(38.1, 3.3e18),
    "en-fr big": Published(41.8, 2.3e19),
}


@dataclass(frozen=True, slots=True)
class Collection:
    """The runs and comparisons of a directory, by the names of their files."""

    directory: Path
    runs: Mapping[str, Record]
    comparisons: Mapping[str, Record]
    examples: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The translation of each sentence, by model."""

    @classmethod
    def read(cls, directory: Path) -> "Collection":
        """Read every JSON file of a directory."""
        paths = sorted(directory.glob("*.json"), key=lambda path: path.stem)
        records = {path.stem: json.loads(path.read_bytes()) for path in paths}
        runs, comparisons, others = (
            {name: record for name, record in records.items() if record["kind"] == kind}
            for kind in ("run", "comparison", "examples")
        )
        return cls(directory, runs, comparisons, others.get("examples", {}).get("models", {}))

    def translations(self, name: str) -> dict[str, Path]:
        """The stored translations of a run by test set, each verified by the record's sha256."""
        run = self.runs[name]
        language = run["recipe"]["target_language"]
        kept = {}
        for test, scored in run["stages"]["score"]["inputs"]["hypotheses"].items():
            path = self.directory / name / f"{test}.{language}.xz"
            if path.exists():
                if sha256(lzma.decompress(path.read_bytes())) != scored:
                    raise ValueError(f"{path}: is not what {name}.json scored; remove the file")
                kept[test] = path
        return kept

    def link(self, name: str, text: str = "", up: str = UP) -> str:
        """A Markdown link to a record, from the log or, without `up`, from the page."""
        return f"[{text or name}]({up}{self.directory.name}/{name}.json)"


def sha256(content: bytes) -> str:
    """The sha256 of a file's content, as records state it."""
    return hashlib.sha256(content).hexdigest()


def run_of(records: Collection, comparison: Record, place: int) -> tuple[str, Record] | None:
    """The run that has the translations of one side of a comparison."""
    scored = {test: one["hypotheses"][place] for test, one in comparison["tests"].items()}
    for name, run in records.runs.items():
        if scored.items() <= run["stages"]["score"]["inputs"]["hypotheses"].items():
            return name, run
    return None


def compared_with(records: Collection, system: str) -> dict[str, Record]:
    """The comparisons whose second system is the given one."""
    return {
        name: comparison
        for name, comparison in records.comparisons.items()
        if system_of(comparison["systems"][1]) == system
    }


def system_of(run: Record) -> str:
    """The name of a system; records abbreviate the baseline's."""
    name: str = run["system"]
    return name.replace("HF MarianMT", MARIAN)


def title_of(run: Record) -> str:
    """The paper's system of this size and these languages."""
    size = {512: "base", 1024: "big"}.get(run["recipe"]["experiment"]["model"]["d_model"], "small")
    return f"{run['recipe']['source_language']}-{run['recipe']['target_language']} {size}"


def bleu(report: Record, convention: str = "sacreBLEU") -> str:
    """The score of a test set's report in one convention."""
    scores = report["systems"][0]["scores"]
    return next(f"{s['value']:.2f}" for s in scores if s["convention"]["name"] == convention)


def difference(compared: Record) -> str:
    """Three cells of a table: the difference, its interval and p."""
    low, high = compared["interval"]["low"], compared["interval"]["high"]
    return f"{compared['difference']:+.2f} | {low:+.2f} to {high:+.2f} | {compared['p_value']:.3f}"


def table(head: str, rows: Iterable[str]) -> str:
    """A Markdown table; `head` is without its outer bars."""
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


def duration(seconds: float) -> str:
    """Seconds as minutes, or as hours from two hours on."""
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"
