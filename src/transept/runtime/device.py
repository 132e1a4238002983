"""What there is to compute on."""

import platform

import torch


def describe_devices() -> list[str]:
    """A line for each device, the CPU first."""
    cpu = f"cpu: {platform.machine()}, {torch.get_num_threads()} threads"
    gpus = [
        f"cuda:{index}: {torch.cuda.get_device_name(index)}"
        for index in range(torch.cuda.device_count())
    ]
    return [cpu, *gpus]
