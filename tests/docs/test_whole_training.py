"""`transept demo` and the guide on training train the same model, so one training serves both."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, Reader, blocks_of
from tests.docs.test_code_blocks import bleu_scores
from tests.integration.test_demo import bleu, exact_match

from transept import config
from transept.checkpoint import CHECKPOINTS, CONFIG, WEIGHTS
from transept.data.shards import Corpus
from transept.experiment import Experiment

GUIDE = ROOT / "docs" / "guides" / "train.md"
RUN = "runs/small"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a whole demo."""
    output = tmp_path_factory.mktemp("demo") / "demo"
    words = [sys.executable, "-m", "transept", "demo", "--output", str(output)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}  # as the guide's, for the same bits
    assert subprocess.run(words, env=environment, check=False).returncode == 0
    return output


def test_demo_reaches_the_documented_scores(demo: Path) -> None:
    """BLEU above 90 and more than 80 % exact on combinations that it never saw."""
    assert bleu(demo) > 90
    assert exact_match(demo) > 0.8


def test_training_guide_reaches_the_bleu_that_it_states(demo: Path, new_reader: Reader) -> None:
    directory, printed = new_reader.directory, []
    for block in (block for block in blocks_of(GUIDE) if block.runs):
        if block.text.startswith("transept train "):
            lend(demo, directory)
        printed.append(new_reader.run(block))
    (score,) = bleu_scores(printed)
    (stated,) = re.findall(r"reaches (\d+) BLEU", GUIDE.read_text("utf-8"))
    assert score > int(stated) - 5, "rounding differs between machines, results only slightly"
    ours, theirs = (newest(run) for run in (directory / RUN, demo / "run"))
    assert ours.name == theirs.name
    assert (ours / WEIGHTS).read_bytes() == (theirs / WEIGHTS).read_bytes()


def lend(demo: Path, directory: Path) -> None:
    """Give the guide the demo's run without its last checkpoint, as if it had been stopped there.

    `transept train` then resumes it, and rejects a run whose config or vocabulary differs.
    """
    run = directory / RUN
    shutil.copytree(demo / "run", run, ignore=shutil.ignore_patterns("average-*", "lock"))
    shutil.rmtree(newest(run))
    for name in ("train", "dev"):
        hashes = {Corpus.open(each / "data" / name).hash for each in (demo, directory)}
        assert len(hashes) == 1
    theirs = config.load(Experiment, run / CONFIG)
    ours = config.load(Experiment, directory / "small.toml")
    assert theirs.checkpoint.every_steps == ours.checkpoint.every_steps
    # The places of the data differ, and the share of the run that `every_steps` replaces.
    theirs = replace(theirs, data=ours.data, checkpoint=ours.checkpoint)
    (run / CONFIG).write_text(config.dump(theirs), "utf-8")


def newest(run: Path) -> Path:
    return max((run / CHECKPOINTS).iterdir())
