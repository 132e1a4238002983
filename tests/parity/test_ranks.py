"""Several ranks compared with one: same gradients, weights and losses for the same batches."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

Results = dict[str, torch.Tensor]
RANKS = [2, 4]


def compute(directory: Path, form: str) -> dict[str, Results]:
    words = [sys.executable, "-m", "tests.parity.ranks", str(directory), form]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr
    return {path.stem: load_file(path) for path in directory.glob("*.safetensors")}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    return compute(tmp_path_factory.mktemp("ranks"), "plain")


def part(results: Results, kind: str) -> Results:
    return {name[len(kind) + 1 :]: t for name, t in results.items() if name.startswith(f"{kind}/")}


def furthest(one: Results, other: Results) -> float:
    """The largest relative distance of two tensors of the same name."""
    assert one.keys() == other.keys()
    return max(float((one[x] - other[x]).norm() / other[x].norm()) for x in one)


@pytest.mark.parametrize("ranks", RANKS)
def test_gradients_of_several_ranks_match_one_rank(results: dict[str, Results], ranks: int) -> None:
    one, several = (part(results[f"plain-{n}"], "gradients") for n in (0, ranks))
    assert furthest(several, one) < 1e-5


@pytest.mark.parametrize("ranks", RANKS)
def test_weights_after_fifty_steps_match_one_rank(results: dict[str, Results], ranks: int) -> None:
    for kind in ("weights", "average"):
        one, several = (part(results[f"plain-{n}"], kind) for n in (0, ranks))
        assert furthest(several, one) < 1e-9


@pytest.mark.parametrize("ranks", RANKS)
def test_losses_match_one_rank_and_all_ranks_hold_same_bits(
    results: dict[str, Results], ranks: int
) -> None:
    one, several = (part(results[f"plain-{n}"], "losses") for n in (0, ranks))
    torch.testing.assert_close(several["all"], one["all"], rtol=1e-4, atol=0)
    assert several["agreement"] == 1


def test_single_rank_with_process_group_gives_same_bits(results: dict[str, Results]) -> None:
    alone, joined = results["plain-0"], results["plain-1"]
    for name, tensor in joined.items():
        assert torch.equal(tensor, alone[name]), name


@pytest.mark.parametrize("ranks", RANKS)
def test_sharded_optimizer_gathers_same_moments(results: dict[str, Results], ranks: int) -> None:
    whole, sharded = (part(results[f"plain-{ranks}"], kind) for kind in ("whole", "sharded"))
    assert whole.keys() == sharded.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, sharded[name]), name


@pytest.mark.parametrize("ranks", RANKS)
def test_nan_gradient_on_one_rank_skips_step_on_all(
    results: dict[str, Results], ranks: int
) -> None:
    suppressed = part(results[f"plain-{ranks}"], "suppressed")
    assert {name: int(value) for name, value in suppressed.items()} == {
        "kept": 1,
        "count": 1,
        "agree": 1,
    }


def test_gradients_sent_in_bf16_are_only_rounded(results: dict[str, Results]) -> None:
    exact = part(results["plain-0"], "gradients")
    assert 1e-4 < furthest(results["bf16-2"], exact) < 1e-2


def test_fused_step_on_two_ranks_matches_one_rank(tmp_path: Path) -> None:
    # The interpreter of earlier versions does not support NumPy 2.4.
    pytest.importorskip("triton", minversion="3.7")
    found = compute(tmp_path, "fused")
    assert furthest(found["fused-2"], found["fused-0"]) < 1e-6


@pytest.mark.gpu
def test_one_rank_with_nccl_matches_single_process(tmp_path: Path) -> None:
    """The graph ends with the gradients; those of the embedding are added in any order."""
    found = compute(tmp_path, "gpu")
    assert furthest(found["gpu-1"], found["gpu-0"]) < 1e-4
