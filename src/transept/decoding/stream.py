"""One output as it comes into being: for readers who do not want to wait for the end."""

from collections.abc import Iterator

from transept.decoding.beam import search_states
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Partial
from transept.decoding.step import Step


def stream(step: Step, max_length: int, config: SearchConfig, eos_id: int) -> Iterator[Partial]:
    """`search` for one sentence, telling after each step what is known.

    The last one yielded has the outputs, the same that `search` returns. The best of these begins
    with every token that was stable before. With beam size 1, all tokens are stable at once.

    Args:
        step: The model, with one row.
        max_length: The longest output, end symbol counted.
        config: Beam size, length penalty, number of outputs.
        eos_id: The end symbol.
    """
    for state in search_states(step, [max_length], config, eos_id):
        if not state.done[0]:
            yield state.partial(0)
            continue
        outputs = tuple(state.result(0))
        ids = outputs[0].ids if outputs else ()
        yield Partial(ids, stable=len(ids), outputs=outputs)
