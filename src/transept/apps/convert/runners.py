"""Programs that run exported models, for `verification`."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from transept.api.networks import Networks
from transept.apps.convert.verification import GREEDY, Runner
from transept.decoding.engine import Input
from transept.engines.native.engine import NativeEngine
from transept.formats.ctranslate2_writer import Names
from transept.formats.foreign import build
from transept.formats.huggingface_reader import read_marian
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID


class CTranslate2Runner:
    """CTranslate2, in single precision."""

    def __init__(self, directory: Path, names: Names, *, add_source_eos: bool) -> None:
        """Load an exported model.

        Args:
            directory: The directory with `model.bin`.
            names: The entries of the vocabularies.
            add_source_eos: Whether CTranslate2 appends the end symbol to a source sentence.
        """
        import ctranslate2

        self.name = f"CTranslate2 {ctranslate2.__version__}"
        self._translator = ctranslate2.Translator(str(directory), compute_type="float32")
        self._names, self._ends = names, add_source_eos
        self._ids = {name: index for index, name in enumerate(names.target)}

    def greedy(self, source: Sequence[int], max_length: int) -> tuple[list[int], list[float]]:
        """The greedy translation, with its end symbol if it has one, and log p of each token."""
        pieces = [self._names.source[index] for index in (source[:-1] if self._ends else source)]
        (result,) = self._translator.translate_batch(
            [pieces], beam_size=1, max_decoding_length=max_length, return_end_token=True
        )
        ids = [self._ids[name] for name in result.hypotheses[0]]
        end = self._names.target[EOS_ID]
        text = [name for name in result.hypotheses[0] if name != end]
        (scored,) = self._translator.score_batch([pieces], [text])
        return ids, scored.log_probs[: len(ids)]


class TransformersRunner:
    """Hugging Face transformers."""

    def __init__(self, directory: Path) -> None:
        """Load a MarianMT directory."""
        import transformers

        self.name = f"transformers {transformers.__version__}"
        self._model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            directory, local_files_only=True
        ).eval()

    @torch.inference_mode()
    def greedy(self, source: Sequence[int], max_length: int) -> tuple[list[int], list[float]]:
        """The greedy translation, with its end symbol if it has one, and log p of each token."""
        ids = torch.tensor([source])
        (found,) = self._model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=1, do_sample=False,
            max_length=None, max_new_tokens=max_length, forced_eos_token_id=None,
        )  # fmt: skip
        logits = self._model(input_ids=ids, decoder_input_ids=found[None, :-1]).logits[0]
        log_p = logits.log_softmax(-1).gather(1, found[1:, None])[:, 0]
        return found[1:].tolist(), log_p.tolist()


class ReadBackRunner:
    """transept itself, with the weights as it reads them from a MarianMT directory."""

    name = "transept, which read the files again (transformers is not installed)"

    def __init__(self, directory: Path) -> None:
        """Read a MarianMT directory."""
        model = build(read_marian(directory))
        self._engine, self._networks = NativeEngine([model]), Networks([model])

    def greedy(self, source: Sequence[int], max_length: int) -> tuple[list[int], list[float]]:
        """The greedy translation, with its end symbol if it has one, and log p of each token."""
        ((best, *_),) = self._engine.search([Input(source, max_length)], GREEDY, no_progress)
        ids = [*best.ids, EOS_ID] if best.finished else list(best.ids)
        return ids, self._networks.token_log_probabilities([source], [ids])[0]


def marian_runner(directory: Path) -> Runner:
    """Transformers if it is installed, else transept's own reader."""
    return (TransformersRunner if find_spec("transformers") else ReadBackRunner)(directory)
