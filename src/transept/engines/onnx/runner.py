"""Run an exported network in ONNX Runtime, to verify it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transept.engines.onnx.network import DECODER, DECODER_WITH_PAST, ENCODER, START_ID, require
from transept.text.tokenizer import EOS_ID


class OnnxRunner:
    """The files of a directory that `write_onnx` has filled, opened in ONNX Runtime."""

    def __init__(self, directory: Path) -> None:
        require()
        import onnxruntime

        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        self._encoder = session(directory / ENCODER)
        self._decoder = session(directory / DECODER)
        self._with_past = session(directory / DECODER_WITH_PAST)
        self._start_id = int(self._decoder.get_modelmeta().custom_metadata_map[START_ID])

    def greedy(self, source: Sequence[int], max_length: int) -> tuple[list[int], list[float]]:
        """The greedy translation, with its end symbol if it has one, and log p of each token."""
        ids = np.array([source], np.int64)
        mask = np.ones_like(ids)
        states = run(self._encoder, input_ids=ids, attention_mask=mask)["last_hidden_state"]
        found, log_p, cache = list[int](), list[float](), dict[str, Any]()
        while len(found) < max_length and EOS_ID not in found[-1:]:
            last = np.array([[found[-1] if found else self._start_id]], np.int64)
            inputs = {"input_ids": last, "encoder_attention_mask": mask}
            if found:
                outputs = run(self._with_past, **inputs, **cache)
            else:
                outputs = run(self._decoder, **inputs, encoder_hidden_states=states)
            cache |= as_past(outputs)
            row = torch.from_numpy(outputs["logits"][0, -1]).double().log_softmax(dim=0)
            found.append(int(row.argmax()))
            log_p.append(float(row[found[-1]]))
        return found, log_p


def session(path: Path) -> Any:
    """A file in ONNX Runtime. It uses the same number of threads as torch."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(network: Any, **inputs: Any) -> dict[str, Any]:
    """The outputs of a network by name."""
    names = [one.name for one in network.get_outputs()]
    return dict(zip(names, network.run(names, inputs), strict=True))


def as_past(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The keys and values in the outputs of a step, by their names as inputs of the next."""
    pairs = ((name.split(".", 1), value) for name, value in outputs.items() if "." in name)
    return {f"past_key_values.{rest}": value for (_, rest), value in pairs}
