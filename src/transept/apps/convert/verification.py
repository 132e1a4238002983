"""Check an exported model: run it in the program that it was written for, and compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from transept.api.networks import Networks
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.native.engine import NativeEngine
from transept.errors import CheckpointError
from transept.model.transformer import Transformer
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID, Tokenizer

EXACT, ROUNDED = 1e-4, 1e-2
"""The largest accepted difference of a log-probability: single precision, and 8-bit integers."""
SENTENCES = (
    "Good morning.",
    "The old man reads a book in the house beside the river.",
    "In 2017, 1,234 people signed the letter; 5.6 % did not.",
    "Wir haben gestern lange über die neuen Regeln gesprochen.",
    "La réunion commence à neuf heures et demie.",
    "Вчера шёл дождь.",
    "“Who is there?” she asked, and opened the door.",
    "x",
)
GREEDY = SearchConfig(beam_size=1, length_penalty=0.0)


@runtime_checkable
class Runner(Protocol):
    """A program that runs an exported model."""

    name: str

    def greedy(self, source: Sequence[int], max_length: int) -> tuple[list[int], list[float]]:
        """The greedy translation, with its end symbol if it has one, and log p of each token."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a comparison."""

    program: str
    n_sentences: int
    difference: float
    """The largest difference of a token's log-probability."""

    def __str__(self) -> str:
        return (
            f"verified with {self.program}: {self.n_sentences} greedy translations are equal, "
            f"log-probabilities differ by at most {self.difference:.0e}"
        )


def verify(
    model: Transformer, tokenizer: Tokenizer, runner: Runner, tolerance: float = EXACT
) -> Verification:
    """Compare greedy translations and their log-probabilities with those of the network.

    Args:
        model: The network, with the weights that were stored.
        tokenizer: The source vocabulary.
        runner: The program.
        tolerance: The largest accepted difference of a log-probability.
    """
    networks, engine = Networks([model]), NativeEngine([model])
    largest = 0.0
    for text in SENTENCES:
        source = tokenizer.framed(tokenizer.encode(text))
        max_length = len(source) + 20
        ((best, *_),) = engine.search([Input(source, max_length)], GREEDY, no_progress)
        ours = [*best.ids, EOS_ID] if best.finished else list(best.ids)
        theirs, log_p = runner.greedy(source, max_length)
        expected, known = (
            networks.token_log_probabilities([source], [ids])[0] for ids in (ours, theirs)
        )
        pairs = zip(known, log_p, strict=True)
        largest = max(largest, *(abs(one - other) for one, other in pairs))
        if largest > tolerance or _differ(ours, theirs, expected, known, tolerance):
            raise CheckpointError(
                f"{runner.name} translates {text!r} differently from the exported network "
                f"(log-probabilities differ by {largest:.1e}); nothing was written. "
                "This is a bug: please report it with the model's config.toml"
            )
    return Verification(runner.name, len(SENTENCES), largest)


def _differ(
    ours: Sequence[int],
    theirs: Sequence[int],
    expected: Sequence[float],
    known: Sequence[float],
    tolerance: float,
) -> bool:
    """Whether two greedy translations differ, and not because two tokens are equally probable."""
    for one, other, log_p, other_log_p in zip(ours, theirs, expected, known, strict=False):
        if one != other:
            return abs(log_p - other_log_p) > 2 * tolerance
    return len(ours) != len(theirs)
