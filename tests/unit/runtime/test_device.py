import pytest
import torch

from transept.errors import ConfigError
from transept.runtime.device import Runtime


@pytest.mark.parametrize("device", ["gpu", "mps", "meta", "cuda:1000", "cuda:", ""])
def test_missing_device_is_rejected_and_others_are_listed(device: str) -> None:
    with pytest.raises(ConfigError) as error:
        Runtime.choose(device)
    (problem,) = error.value.problems
    assert problem.key == "device"
    assert "choose auto" in problem.what


def test_one_of_several_gpus_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Runtime.choose("cuda:1").device == torch.device("cuda:1")
    assert Runtime.choose("auto").device == torch.device("cuda")
    with pytest.raises(ConfigError, match=r"2 GPUs; choose auto, cpu, cuda, cuda:0 or cuda:1"):
        Runtime.choose("cuda:2")
