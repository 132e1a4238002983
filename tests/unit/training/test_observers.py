import json
import math
import subprocess
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transept.training.observers import MetricsLog, TensorBoard, read_metrics


def test_metrics_log_removes_lines_after_resumed_step(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, resume_from=0)
    for step in (1, 2, 3):
        log.observe({"kind": "step", "step": step})
    log.close()
    with path.open("a") as file:
        file.write('{"kind": "step", "st')  # cut short by a crash
    again = MetricsLog(path, resume_from=2)
    again.observe({"kind": "step", "step": 3, "repeated": True})
    again.close()
    lines = read_metrics(path)
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert lines[-1]["repeated"]


def test_metrics_log_writes_null_for_non_finite_values(tmp_path: Path) -> None:
    def reject(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "step", "step": 1, "loss": NaN}\n')  # written by an older transept
    log = MetricsLog(path, resume_from=1)
    log.observe({"kind": "step", "step": 2, "loss": math.nan, "nll": math.inf, "lr": 0.5})
    log.close()
    written = path.read_text().splitlines()
    first, second = [json.loads(line, parse_constant=reject) for line in written]
    assert first == {"kind": "step", "step": 1, "loss": None}
    assert second == {"kind": "step", "step": 2, "loss": None, "nll": None, "lr": 0.5}


def test_read_metrics_skips_invalid_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    good = [{"kind": "step", "step": step} for step in (1, 2, 3)]
    lines = [json.dumps(line).encode() for line in good]
    path.write_bytes(
        b"\n".join([lines[0], bytes(9), b"[1]", b'{"kind": "st', *lines[1:], lines[0][:9]])
    )
    assert read_metrics(path) == good


def test_metrics_log_on_full_disk_raises_and_keeps_complete_lines(tmp_path: Path) -> None:
    """Runs in a process with a limited file size, as on a full disk."""
    path = tmp_path / "metrics.jsonl"
    code = """
import resource, signal, sys
from pathlib import Path
from transept.errors import TranseptError
from transept.training.observers import MetricsLog
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
log = MetricsLog(Path(sys.argv[1]), resume_from=0)
try:
    for step in range(100):
        log.observe({"kind": "step", "step": step, "text": "x" * 50})
except TranseptError as error:
    print(error)
log.close()
"""
    words = [sys.executable, "-c", code, str(path)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "metrics.jsonl: the log cannot be written (File too large)" in said
    assert "run the same command to resume" in said
    content = path.read_bytes()
    assert content.endswith(b"}\n")
    assert len(read_metrics(path)) == content.count(b"\n") > 5


def test_tensorboard_receives_values_of_steps_validations_and_quality(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    board.observe({"kind": "start", "step": 0, "text": "begin"})
    board.observe({"kind": "step", "step": 3, "loss": 1.5})
    board.observe({"kind": "validation", "step": 3, "nll": 0.5, "best": True})
    board.observe({"kind": "quality", "step": 3, "bleu": 20.5, "samples": [{"output": "x"}]})
    board.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"step/loss", "validation/nll", "quality/bleu"} <= set(events.Tags()["scalars"])
    (loss,) = events.Scalars("step/loss")
    assert (loss.step, loss.value) == (3, 1.5)
