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
    reported: list[tuple[int, int | None]] = []
    download(f"{site.url}/{name}", path, watch=lambda *how: reported.append(how), pauses=QUICKLY)
    return reported


def test_a_file_arrives_whole(site: "Site", tmp_path: Path) -> None:
    reported = fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["x.tgz"]
    assert reported[0] == (0, len(CONTENT))
    assert reported[-1] == (len(CONTENT), len(CONTENT))


def test_interrupted_response_is_resumed(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000, 250_000, 1]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT
    asked = [request.get("range") for request in site.requests]
    assert asked == [None, "bytes=100000-", "bytes=350000-", "bytes=350001-"]
    assert site.requests[1]["if-range"] == '"one"'


def test_later_run_resumes_the_download(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000]
    site.failures = []
    with pytest.raises(DownloadError, match="ended after 100,000 of 700,000 bytes"):
        download(f"{site.url}/x.tgz", tmp_path / "x.tgz", pauses=())
    assert not (tmp_path / "x.tgz").exists()
    assert (tmp_path / "x.tgz.part").stat().st_size == 100_000
    fetch(site, tmp_path / "x.tgz")
    assert site.requests[-1]["range"] == "bytes=100000-"
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_download_restarts_if_server_ignores_ranges(site: "Site", tmp_path: Path) -> None:
    site.ranges = False
    site.cut_after = [100_000]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_changed_file_is_downloaded_from_scratch(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [100_000]
    with pytest.raises(DownloadError):
        download(f"{site.url}/x.tgz", tmp_path / "x.tgz", pauses=())
    site.files["x.tgz"] = CONTENT[::-1]
    site.etag = '"two"'
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT[::-1]


def test_complete_part_is_accepted(site: "Site", tmp_path: Path) -> None:
    (tmp_path / "x.tgz.part").write_bytes(CONTENT)
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_part_longer_than_the_file_is_discarded(site: "Site", tmp_path: Path) -> None:
    (tmp_path / "x.tgz.part").write_bytes(CONTENT + b"more")
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_download_retries_while_server_is_overloaded(site: "Site", tmp_path: Path) -> None:
    site.failures = [503, 429]
    fetch(site, tmp_path / "x.tgz")
    assert (tmp_path / "x.tgz").read_bytes() == CONTENT


def test_download_fails_if_server_stays_overloaded(site: "Site", tmp_path: Path) -> None:
    site.failures = [503] * 9
    with pytest.raises(DownloadError, match="answered 503"):
        fetch(site, tmp_path / "x.tgz")
    assert len(site.requests) == 1 + len(QUICKLY)


def test_missing_file_is_not_retried(site: "Site", tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"nothing\.tgz: the server answered 404"):
        fetch(site, tmp_path / "x.tgz", "nothing.tgz")
    assert len(site.requests) == 1


def test_download_fails_without_server(unused_address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="refused"):
        download(f"{unused_address}/x.tgz", tmp_path / "x.tgz", pauses=QUICKLY)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x", "x.tgz"])
def test_other_url_schemes_are_rejected(url: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="only http and https"):
        download(url, tmp_path / "x")
