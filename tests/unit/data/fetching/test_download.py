import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from transept.data.fetching.download import DownloadError, download

if TYPE_CHECKING:
    from tests.unit.data.conftest import Site

CONTENT = random.Random(0).randbytes(700_000)
QUICKLY = (0.0, 0.0)


@pytest.fixture(autouse=True)
def served(site: "Site") -> None:
    site.files["x.tgz"] = CONTENT


def fetch(site: "Site", path: Path, name: str = "x.tgz") -> list[tuple[int, int | None]]:
    told: list[tuple[int, int | None]] = []
    download(f"{site.url}/{name}", path, watch=lambda *how: told.append(how), pauses=QUICKLY)
    return told


def test_a_file_arrives_whole(site: "Site", tmp_path: Path) -> None:
    told = fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["x.tgz"]
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_an_answer_that_breaks_off_is_continued(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000, 250_000, 1]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT
    asked = [request.get("range") for request in site.requests]
    assert asked == [None, "bytes=100000-", "bytes=350000-", "bytes=350001-"]
    assert site.requests[1]["if-range"] == '"one"'


def test_another_run_continues(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000]
    site.failures = []
    with pytest.raises(DownloadError, match="ended after 100,000 of 700,000 bytes"):
        download(f"{site.url}/x.tgz", tmp_path / "x.tgz", pauses=())
    assert not (tmp_path / "x.tgz").exists()
    assert (tmp_path / "x.tgz.part").stat().st_size == 100_000
    fetch(site, tmp_path / "x.tgz")
    assert site.requests[-1]["range"] == "bytes=100000-"
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges(site: "Site", tmp_path: Path) -> None:
    site.ranges = False
    site.cut_after = [100_000]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_a_file_that_changed_in_between_is_begun_anew(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000]
    with pytest.raises(DownloadError):
        download(f"{site.url}/x.tgz", tmp_path / "x.tgz", pauses=())
    site.files["x.tgz"] = CONTENT[::-1]
    site.etag = '"two"'
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT[::-1]


def test_a_part_that_is_already_whole(site: "Site", tmp_path: Path) -> None:
    (tmp_path / "x.tgz.part").write_bytes(CONTENT)
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file(site: "Site", tmp_path: Path) -> None:
    (tmp_path / "x.tgz.part").write_bytes(CONTENT + b"more")
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_a_server_that_is_overloaded_for_a_while(site: "Site", tmp_path: Path) -> None:
    site.failures = [503, 429]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_a_server_that_stays_overloaded(site: "Site", tmp_path: Path) -> None:
    site.failures = [503] * 9
    with pytest.raises(DownloadError, match="answered 503"):
        fetch(site, tmp_path / "x.tgz")
    assert len(site.requests) == 1 + len(QUICKLY)


def test_a_missing_file_is_not_asked_for_again(site: "Site", tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"nothing\.tgz: the server answered 404"):
        fetch(site, tmp_path / "x.tgz", "nothing.tgz")
    assert len(site.requests) == 1


def test_no_server(nobody: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="refused"):
        download(f"{nobody}/x.tgz", tmp_path / "x.tgz", pauses=QUICKLY)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "x.tgz"])
def test_other_schemes(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="only http and https"):
        download(url, tmp_path / "x")
