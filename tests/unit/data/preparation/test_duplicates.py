import random
from pathlib import Path

import numpy as np
import pytest

from transept.data.preparation.duplicates import HASH_BYTES, SeenPairs, pair_hash
from transept.errors import DataError


def hashes(*values: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


def test_only_the_first_of_equal_hashes_is_new(tmp_path: Path) -> None:
    seen = SeenPairs(tmp_path / "seen")
    assert seen.add(hashes(7, 8, 7, 9)).tolist() == [True, True, False, True]
    assert seen.add(hashes(9, 10)).tolist() == [False, True]
    assert len(seen) == 4
    seen.close()


def test_agrees_with_a_python_set_while_it_grows(tmp_path: Path) -> None:
    generator = random.Random(1)
    values = [generator.getrandbits(64) for _ in range(40_000)]
    seen, reference = SeenPairs(tmp_path / "seen"), set()
    for _ in range(40):
        batch = generator.choices(values, k=1500)
        expected = []
        for value in batch:
            expected.append(value not in reference)
            reference.add(value)
        assert seen.add(hashes(*batch)).tolist() == expected
    assert len(seen) == len(reference)
    seen.close()


def test_set_takes_at_most_sixteen_bytes_per_pair(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    seen = SeenPairs(tmp_path / "seen")
    for _ in range(200):
        seen.add(generator.integers(0, 2**64, 2048, dtype=np.uint64))
        assert seen.nbytes <= 16 * len(seen)
    seen.close()


def test_set_can_be_restored_at_any_earlier_count(tmp_path: Path) -> None:
    path = tmp_path / "seen"
    seen = SeenPairs(path)
    seen.add(np.arange(1, 50_001, dtype=np.uint64))
    seen.close()
    again = SeenPairs(path, count=30_000)
    assert not again.add(hashes(1, 30_000)).any()
    assert again.add(hashes(30_001)).all()
    again.close()
    assert path.stat().st_size == 30_001 * HASH_BYTES


def test_truncated_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "seen").write_bytes(b"\1" * 8)
    with pytest.raises(DataError, match=r"seen is shorter than recorded.*`restart`"):
        SeenPairs(tmp_path / "seen", count=2)


def test_zero_hash_is_handled(tmp_path: Path) -> None:
    seen = SeenPairs(tmp_path / "seen")
    assert seen.add(hashes(0)).tolist() == [True]
    assert seen.add(hashes(0)).tolist() == [False]
    seen.close()


def test_hash_distinguishes_the_sides_of_a_pair() -> None:
    assert pair_hash("a b", "c") != pair_hash("a", "b c")
    assert pair_hash("a", "b") != pair_hash("b", "a")
