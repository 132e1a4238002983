import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from transept.data.fetching.archives import unpack
from transept.errors import DataError


def tar(path: Path, members: dict[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_only_wanted_members_are_written(tmp_path: Path, mode: str) -> None:
    archive = tar(tmp_path / "x", {"./d/a": b"1", "d/b": b"2", "d/c": b"3"}, mode)
    target = tmp_path / "out"
    target.mkdir()
    unpack(archive, {"d/a": target / "one", "d/c": target / "three"})
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        "one": b"1",
        "three": b"3",
    }


def test_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("deu.txt", "a\tb")
        archive.writestr("../evil", "no")
    unpack(tmp_path / "x.zip", {"deu.txt": tmp_path / "out"})
    assert (tmp_path / "out").read_bytes() == b"a\tb"
    assert not (tmp_path.parent / "evil").exists()


def test_hostile_member_names_write_nothing_outside(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    names = ["../evil", "/tmp/transept-evil", "d/../../evil"]
    archive = tar(tmp_path / "x.tgz", {**dict.fromkeys(names, b"no"), "d/a": b"1"})
    unpack(archive, {"d/a": inside / "a"})
    assert [path.name for path in inside.iterdir()] == ["a"]
    assert not (tmp_path / "evil").exists()
    assert not Path("/tmp/transept-evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_member_that_is_not_a_regular_file_is_rejected(tmp_path: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("d/a")
    link.type = kind
    link.linkname = "/etc/passwd"
    with pytest.raises(DataError, match="d/a is a link or a device"):
        unpack(tar(tmp_path / "x.tgz", {"d/a": link}), {"d/a": tmp_path / "out"})
    assert not (tmp_path / "out").exists()


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("deu.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match=r"deu\.txt is a link or a device"):
        unpack(tmp_path / "x.zip", {"deu.txt": tmp_path / "out"})


def test_a_missing_member(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lacks d/b, d/c; is it another edition"):
        unpack(
            tar(tmp_path / "x.tgz", {"d/a": b"1"}),
            dict.fromkeys(("d/a", "d/b", "d/c"), tmp_path / "out"),
        )


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.9])
def test_a_damaged_archive(tmp_path: Path, keep: float) -> None:
    archive = tar(tmp_path / "x.tgz", {"d/a": bytes(range(256)) * 4000})
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(keep if keep >= 1 else keep * len(whole))])
    with pytest.raises(DataError, match="is damaged or not an archive"):
        unpack(archive, {"d/a": tmp_path / "out"})
