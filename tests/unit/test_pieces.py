import json
import os
from pathlib import Path

import pytest

from transept.errors import DataError
from transept.pieces import Compression, Listing, join, split


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Files of all kinds: text, noise, nothing, and one below another directory."""
    place = tmp_path / "corpus"
    (place / "tokenizer").mkdir(parents=True)
    (place / "a.txt").write_text("one two three\n" * 4000)
    (place / "b.bin").write_bytes(os.urandom(70_000))
    (place / "empty").touch()
    (place / "tokenizer" / "ü.json").write_text("{}")
    return place


def contents(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("compression", ["auto", "none", "zstd", "xz"])
@pytest.mark.parametrize("size", [4096, 30_000, 10_000_000])
def test_there_and_back(
    directory: Path, tmp_path: Path, compression: Compression, size: int
) -> None:
    listing = split(directory, tmp_path / "out", size=size, compression=compression)
    pieces = sorted((tmp_path / "out").glob("*.piece"))
    assert [path.name for path in pieces] == list(listing.pieces)
    assert all(path.stat().st_size <= size for path in pieces)
    assert all(path.stat().st_size == size for path in pieces[:-1])
    assert join([tmp_path / "out"], tmp_path / "back") == listing
    assert contents(tmp_path / "back") == contents(directory)


def test_it_says_how_far_it_is(directory: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    split(directory, tmp_path / "out", size=30_000, watch=lambda *far: told.append(far))
    size = sum(map(len, contents(directory).values()))
    assert told == sorted(told)
    assert told[-1] == (size, size)
    told.clear()
    join([tmp_path / "out"], tmp_path / "back", watch=lambda *far: told.append(far))
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_auto_leaves_noise_alone_and_shrinks_text(directory: Path, tmp_path: Path) -> None:
    assert split(directory, tmp_path / "noise", size=10**6).compression == "none"
    (directory / "b.bin").unlink()
    assert split(directory, tmp_path / "text", size=10**6).compression == "zstd"


def test_the_same_files_make_the_same_pieces(directory: Path, tmp_path: Path) -> None:
    first = split(directory, tmp_path / "one", size=30_000)
    os.utime(directory / "a.txt", (0, 0))
    assert split(directory, tmp_path / "two", size=30_000) == first


def test_pieces_may_arrive_in_several_places(directory: Path, tmp_path: Path) -> None:
    split(directory, tmp_path / "out", size=30_000)
    for number, path in enumerate(sorted((tmp_path / "out").iterdir())):
        place = tmp_path / f"arrival-{number}"
        place.mkdir()
        path.rename(place / path.name)
    join(sorted(tmp_path.glob("arrival-*")), tmp_path / "back")
    assert contents(tmp_path / "back") == contents(directory)


def test_what_is_missing_or_damaged_is_named_and_nothing_is_made(
    directory: Path, tmp_path: Path
) -> None:
    split(directory, tmp_path / "out", size=30_000)
    first, second, third, *_ = sorted((tmp_path / "out").glob("*.piece"))
    second.unlink()
    damaged = bytearray(third.read_bytes())
    damaged[100] ^= 1
    third.write_bytes(damaged)
    with pytest.raises(DataError) as error:
        join([tmp_path / "out"], tmp_path / "back")
    assert f"{second.name}: missing" in str(error.value)
    assert f"{third}: damaged" in str(error.value)
    assert first.name not in str(error.value)
    assert not (tmp_path / "back").exists()


def test_a_list_that_does_not_belong_is_noticed(directory: Path, tmp_path: Path) -> None:
    listing = split(directory, tmp_path / "out", size=30_000)
    path = tmp_path / "out" / "corpus.pieces.json"
    table = json.loads(path.read_text())
    table["files"].pop("a.txt")
    path.write_text(json.dumps(table))
    with pytest.raises(DataError, match=r"hold a\.txt, which is not listed"):
        join([tmp_path / "out"], tmp_path / "back")
    assert listing.save(tmp_path / "out") == path
    path.write_text("{}")
    with pytest.raises(DataError, match="is no list of pieces"):
        join([tmp_path / "out"], tmp_path / "back")
    path.unlink()
    with pytest.raises(DataError, match="found no list of pieces"):
        join([tmp_path / "out"], tmp_path / "back")


def test_nothing_is_overwritten(directory: Path, tmp_path: Path) -> None:
    split(directory, tmp_path / "out", size=30_000)
    with pytest.raises(DataError, match="is there already"):
        join([tmp_path / "out"], directory)
    with pytest.raises(DataError, match="is no directory"):
        split(tmp_path / "nowhere", tmp_path / "out", size=30_000)
    with pytest.raises(DataError, match="is not there"):
        join([tmp_path / "nowhere"], tmp_path / "back")


def test_pieces_go_elsewhere_and_into_a_directory(directory: Path, tmp_path: Path) -> None:
    for inside in (directory, directory / "pieces"):
        with pytest.raises(DataError, match="choose another --output"):
            split(directory, inside, size=4096)
    assert not (directory / "pieces").exists()
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="file: cannot be written"):
        split(directory, tmp_path / "file", size=4096)


def test_a_list_reads_as_it_was_written(directory: Path, tmp_path: Path) -> None:
    listing = split(directory, tmp_path / "out", size=30_000)
    assert Listing.load(tmp_path / "out" / "corpus.pieces.json") == listing
