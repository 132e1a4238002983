from pathlib import Path

from transept.training.observers import MetricsLog, read_metrics


def test_what_was_logged_after_the_checkpoint_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, resume_from=0)
    for step in (1, 2, 3):
        log.observe({"kind": "step", "step": step})
    log.close()
    with path.open("a") as file:
        file.write('{"kind": "step", "st')  # cut short by a crash
    again = MetricsLog(path, resume_from=2)
    again.observe({"kind": "step", "step": 3, "anew": True})
    again.close()
    lines = read_metrics(path)
    assert [line["step"] for line in lines] == [1, 2, 3]
    assert lines[-1]["anew"]
