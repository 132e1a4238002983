"""Check of exercise 17."""

import torch
from comparing import must
from outputs import Outputs

from transept import ModelConfig, Transformer
from transept.decoding.greedy import greedy_search
from transept.engines.native.network import IncrementalDecoder, encode


@torch.inference_mode()
def check(student):
    """A model with known outputs first, then a network of the package."""
    for length in (10, 3):
        model = Outputs({"abc.": 0.4, "abd.": 0.2, "b.": 0.35, "abcabcabcabc.": 0.05})

        def next_log_p(ids, model=model, length=length):
            written = f"after {model.text(ids)!r} the search asks for one more token: "
            must(model.eos_id not in ids, f"{written}does it stop at the end symbol?")
            must(len(ids) < length, f"{written}does it stop at {length} tokens?")
            return model.next_log_p(model.text(ids))

        compare(student, next_log_p, model, length, model.eos_id, "the model with known outputs")
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=12, n_layers=1, d_model=16, d_ff=32, n_heads=2)
    network, source = Transformer(config).eval(), torch.tensor([[5, 9, 7, 1]])

    def from_network(ids):
        # The last target is what the logits predict; the decoder does not see it.
        log_p = network(source, torch.tensor([[*ids, 1]]))[0, -1]
        log_p[0] = -torch.inf  # padding
        return log_p.log_softmax(0)

    step = IncrementalDecoder(network, encode(network, source))
    compare(student, from_network, step, 8, 1, "a random network")


def compare(student, next_log_p, step, max_length, eos_id, what):
    """Compare with the package's search."""
    (expected,) = greedy_search(step, [max_length], 0.0, eos_id)
    found = student.greedy_search(next_log_p, max_length, eos_id)
    must(isinstance(found, list), f"the result is of type {type(found).__name__}, not a list")
    must(found[-1:] != [eos_id], f"the output {found} ends with the end symbol, {eos_id}")
    must(
        found == list(expected.ids),
        f"for {what} and at most {max_length} tokens the output is {found}, not "
        f"{list(expected.ids)}",
    )
