"""Check of exercise 19."""

import torch
from comparing import must

from transept.decoding.beam import Beams
from transept.decoding.config import SearchConfig

W, V, EOS = 3, 7, 1


def check(student):
    """Compare with the candidates of the package's search, for random probabilities."""
    for seed in range(20):
        torch.manual_seed(seed)
        live = torch.randn(W).sort(descending=True).values.sub(4)
        next_log_p = (2 * torch.randn(W, V)).log_softmax(dim=1)
        result = student.beam_step(live, next_log_p, EOS)
        must(
            isinstance(result, tuple) and len(result) == 2,
            "beam_step must return two lists: live and finished candidates",
        )
        for name, found, expected in zip(
            ("live", "finished"), result, package(live, next_log_p), strict=True
        ):
            compare(name, list(found), expected, live, next_log_p)


def compare(name, found, expected, live, next_log_p):
    """Compare one of the lists, candidate by candidate."""
    tokens = [one.token for one in found]
    must(name == "finished" or EOS not in tokens, "a live hypothesis ends with the end symbol")
    for one in found:
        right = float(live[one.parent] + next_log_p[one.parent, one.token])
        must(
            abs(one.log_p - right) < 1e-4,
            f"the {name} candidate with parent {one.parent} and token {one.token} has log p = "
            f"{one.log_p:.2f}, but its parent's and its token's sum to {right:.2f}",
        )
    must(
        len(found) == len(expected),
        f"there are {len(found)} {name} candidates, not {len(expected)} "
        f"(W = {W}, the {2 * W} best candidates count)",
    )
    for rank, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        must(
            tuple(ours[1:]) == theirs[1:],
            f"{name} candidate {rank} is token {ours.token} of parent {ours.parent} with log p = "
            f"{ours.log_p:.2f}; the package has token {theirs[2]} of parent {theirs[1]} with "
            f"{theirs[0]:.2f}: compare all W · V candidates with each other",
        )


def package(live, next_log_p):
    """The live and the finished candidates of the package."""
    seen = []
    beams = Beams.start(live[None], [50], SearchConfig(beam_size=W), EOS)
    beams.log_p, beams.observer = live[None], lambda candidates, _: seen.append(candidates)
    beams.extend(next_log_p, torch.arange(V).repeat(W, 1))
    candidates = list(zip(*(part[0].tolist() for part in seen[0]), strict=True))
    finished = [one for one in candidates if one[2] == EOS]
    return [one for one in candidates if one[2] != EOS][:W], finished
