"""Parallel work in threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transept.decoding.engine import batches_by_length, dealt
from transept.engines.native import engine
from transept.engines.native.engine import cores, map_parallel


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_map_parallel_returns_results_in_order() -> None:
    both = threading.Barrier(2, timeout=120)

    def work(item: int) -> tuple[int, int, str]:
        if item < 2:
            both.wait()  # passes only if two threads run
        return item, torch.get_num_threads(), threading.current_thread().name

    found = map_parallel(work, range(6), cores(torch.device("cpu")), 2)
    assert [item for item, _, _ in found] == list(range(6))
    assert {n for _, n, _ in found} == {1}
    assert len({name for _, _, name in found}) == 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("items", "n_threads"), [([7], 2), ([7, 8], 1), ([], 2)])
@pytest.mark.parametrize("inside", [1, 2])
def test_map_parallel_runs_single_item_in_calling_thread(
    items: list[int], n_threads: int, inside: int
) -> None:
    here = threading.current_thread()

    def work(item: int) -> tuple[int, threading.Thread, int]:
        return item, threading.current_thread(), torch.get_num_threads()

    found = map_parallel(work, items, n_threads, inside)
    assert found == [(item, here, inside) for item in items]
    assert torch.get_num_threads() == 2


def test_map_parallel_cancels_remaining_items_on_error(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    over = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            over.set()
            super().shutdown(wait=wait)

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise InterruptedError
        assert over.wait(120)

    monkeypatch.setattr(engine, "ThreadPoolExecutor", Pool)
    with pytest.raises(InterruptedError):
        map_parallel(work, range(40), 2, 2)
    assert {*begun} <= {0, 1, 2}, "only the failing item and one per thread may start"
    assert torch.get_num_threads() == 2


def test_gpu_runs_one_batch_at_a_time() -> None:
    assert cores(torch.device("cuda")) == 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 400))
def test_batches_by_length_contain_each_item_and_respect_limit(
    lengths: list[int], max_tokens: int
) -> None:
    batches = [*batches_by_length(lengths, max_tokens)]
    in_order = [lengths[index] for batch in batches for index in batch]
    assert in_order == sorted(lengths, reverse=True)
    assert sorted(index for batch in batches for index in batch) == [*range(len(lengths))]
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch[0]] <= max_tokens


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 8))
def test_threads_get_equal_parts_of_a_batch(lengths: list[int], n_threads: int) -> None:
    (batch,) = batches_by_length(lengths, 10_000)
    parts = [*dealt([batch], n_threads)]
    assert len(parts) == min(n_threads, len(lengths))
    assert sorted(index for part in parts for index in part) == [*range(len(lengths))]
    n_tokens = [sum(lengths[index] for index in part) for part in parts]
    assert max(n_tokens) - min(n_tokens) <= max(lengths)
