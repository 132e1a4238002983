import json
import random
from pathlib import Path

import pytest

from transept.runtime.storage import (
    Stored,
    copy_files,
    digest,
    make_directory,
    new_directory,
    part_of,
    remove_directory,
    replacing,
    sealed,
    unsealed,
    write_file,
)


def test_replacing_is_atomic(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"new, but no")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_new_directory_appears_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "above/directory"
    part_of(path).mkdir(parents=True)
    (part_of(path) / "left by a process that was killed").touch()

    def fail() -> None:
        with new_directory(path) as part:
            (part / "file").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(path.parent.iterdir()) == []
    with new_directory(path) as part:
        (part / "file").touch()
        assert not path.exists()
    assert [each.name for each in path.iterdir()] == ["file"]
    assert [each.name for each in path.parent.iterdir()] == ["directory"]
    remove_directory(path)
    assert list(path.parent.iterdir()) == []


def test_new_directory_replaces_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    with new_directory(path) as part:
        (part / "old").touch()

    def fail() -> None:
        with new_directory(path, replace=True) as part:
            (part / "new").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [each.name for each in path.iterdir()] == ["old"]
    with pytest.raises(OSError, match="directory"), new_directory(path):
        pass
    assert [each.name for each in path.iterdir()] == ["old"]
    with new_directory(path, replace=True) as part:
        (part / "new").touch()
    assert [each.name for each in path.iterdir()] == ["new"]
    assert [each.name for each in tmp_path.iterdir()] == ["directory"]


def test_copy_of_read_only_files_is_writable(tmp_path: Path) -> None:
    original = tmp_path / "original"
    make_directory(original / "below")
    (original / "below/file").write_text("text")
    (original / "below/file").chmod(0o444)
    (original / "below").chmod(0o555)
    copy_files(original, tmp_path / "copy")
    assert (tmp_path / "copy/below/file").read_text() == "text"
    assert (tmp_path / "copy/below").stat().st_mode & 0o200
    assert (tmp_path / "copy/below/file").stat().st_mode & 0o200
    (original / "below").chmod(0o755)


def test_seal_detects_every_changed_byte() -> None:
    table = {"format": 1, "files": {"a": {"bytes": 3}}, "about": {"name": "größer"}}
    content = sealed(table)
    assert unsealed(content) == table
    assert json.loads(content)["format"] == 1
    chance = random.Random(0)
    for place in range(8 * len(content)):
        altered = bytearray(content)
        altered[place // 8] ^= 1 << place % 8
        try:
            found = unsealed(bytes(altered))
        except ValueError:
            continue
        # Only the key of the seal itself may change: then it is an unknown key.
        assert set(found) - set(table), bytes(altered)
    for _ in range(20):
        with pytest.raises(ValueError, match=r"."):
            unsealed(content[: chance.randrange(len(content))])


def test_table_without_seal_is_accepted() -> None:
    assert unsealed(b'{"format": 1}') == {"format": 1}
    with pytest.raises(ValueError, match="not a JSON object"):
        unsealed(b"[]")


def test_stored_has_size_and_checksum(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_file(path, b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert Stored.of(path) == Stored(bytes=3, sha256=known)
    assert digest(path, "md5") == "900150983cd24fb0d6963f7d28e17f72"
    write_file(path, b"abd")
    assert Stored.of(path) != Stored(bytes=3, sha256=known)
