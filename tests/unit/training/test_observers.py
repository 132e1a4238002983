from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transept.training.observers import MetricsLog, TensorBoard, read_metrics


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


def test_tensorboard_gets_the_numbers_of_steps_and_validations(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    board.observe({"kind": "start", "step": 0, "text": "begin"})
    board.observe({"kind": "step", "step": 3, "loss": 1.5})
    board.observe({"kind": "validation", "step": 3, "nll": 0.5, "best": True})
    board.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert {"step/loss", "validation/nll"} <= set(events.Tags()["scalars"])
    (loss,) = events.Scalars("step/loss")
    assert (loss.step, loss.value) == (3, 1.5)
