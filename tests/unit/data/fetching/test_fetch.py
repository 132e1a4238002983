"""Fetches all corpora from small archives with the layout of the real ones."""

import dataclasses
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from transept.data.fetching.datasets import (
    DATASETS,
    Archive,
    ByHash,
    Dataset,
    DatasetName,
    DatasetPart,
    EveryNth,
)
from transept.data.fetching.fetch import Fetched, fetch
from transept.errors import DataError

if TYPE_CHECKING:
    from tests.unit.data.conftest import Site


def tar(members: Mapping[str, str | bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            raw = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return stream.getvalue()


def zipped(members: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def segments(name: str, count: int) -> str:
    lines = "".join(f'<seg id="{i}"> {name} {i} &amp; more </seg>\n' for i in range(1, count + 1))
    return f'<srcset setid="newstest2014">\n<doc docid="1">\n<p>\n{lines}</p></doc></srcset>\n'


def lines(name: str, count: int) -> str:
    return "".join(f"{name} {i}\n" for i in range(count))


def both(stem: str, other: str, count: int) -> dict[str, str | bytes]:
    return {f"{stem}.{side}": lines(f"{stem} {side}", count) for side in ("en", other)}


def wmt_archives() -> dict[str, bytes]:
    europarl = both("training/europarl-v7.de-en", "de", 3)
    europarl |= both("training/europarl-v7.fr-en", "fr", 4)
    news = both("training/news-commentary-v9.de-en", "de", 2)
    news |= both("training/news-commentary-v9.fr-en", "fr", 2)
    giga = {
        f"giga-fren.release2.fixed.{side}.gz": gzip.compress(lines(f"giga {side}", 6).encode())
        for side in ("en", "fr")
    }
    tests = {
        f"test-full/newstest2014-{pair}en-{role}.{side}.sgm": segments(f"test {side}", 2)
        for pair in ("de", "fr")
        for role, side in (("src", "en"), ("ref", pair))
    }
    dev = {f"dev/newstest2013.{side}": lines(f"dev {side}", 2) for side in ("en", "de", "fr")}
    return {
        "training-parallel-europarl-v7.tgz": tar(europarl),
        "training-parallel-commoncrawl.tgz": tar(
            both("commoncrawl.de-en", "de", 1) | both("commoncrawl.fr-en", "fr", 1)
        ),
        "training-parallel-nc-v9.tgz": tar(news),
        "training-parallel-un.tgz": tar(both("un/undoc.2000.fr-en", "fr", 5)),
        "training-giga-fren.tar": tar(giga, "w"),
        "dev.tgz": tar(dev),
        "test-full.tgz": tar(tests),
    }


def iwslt_archive() -> bytes:
    names = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
    members: dict[str, str | bytes] = {
        f"de-en/IWSLT14.{name}.de-en.{side}.xml": segments(f"{name} {side}", 2)
        for name in names
        for side in ("de", "en")
    }
    for side in ("de", "en"):
        head = "<url>u</url>\n<keywords>k</keywords>\n<talkid>1</talkid>\n<title>T</title>\n"
        members[f"de-en/train.tags.de-en.{side}"] = head + lines(f"talk {side}", 45)
    return tar(members)


def archives(name: str) -> dict[str, bytes]:
    if name.startswith(("wmt14", "europarl")):
        return wmt_archives()
    if name == "iwslt14-de-en":
        return {"de-en.tgz": iwslt_archive()}
    if name == "tatoeba-en-de":
        rows = "".join(f"Go {i % 300}.\tGeh {i}.\tCC-BY 2.0 #{i}\n" for i in range(600))
        return {"deu-eng.zip": zipped({"deu.txt": rows, "_about.txt": "Attribution: tatoeba"})}
    stems = {"train": 5, "val": 2, "test_2016_flickr": 3}
    return {
        f"{stem}.{side}.gz": gzip.compress(lines(f"{stem} {side}", count).encode())
        for stem, count in stems.items()
        for side in ("en", "de")
    }


def without_published_checksums(dataset: Dataset, url: str = "") -> Dataset:
    """The same corpus with generated archives, whose checksums are not published."""

    def changed(part: DatasetPart) -> DatasetPart:
        address = f"{url}/{part.archive.name}" if url else part.archive.url
        return dataclasses.replace(part, archive=Archive(url=address))

    splits = {
        split: tuple((changed(source), changed(target)) for source, target in pairs)
        for split, pairs in dataset.splits.items()
    }
    about = changed(dataset.about) if dataset.about else None
    return dataclasses.replace(dataset, splits=splits, about=about)


def fetch_from(site: "Site", name: DatasetName, output: Path) -> Fetched:
    site.files = archives(name)
    dataset = without_published_checksums(DATASETS[name], site.url)
    return fetch(dataset, output, pauses=(0.0,))


EXPECTED: dict[DatasetName, dict[str, int]] = {
    "wmt14-en-de": {"train": 6, "dev": 2, "test": 2},
    "wmt14-en-fr": {"train": 18, "dev": 2, "test": 2},
    "europarl-en-de": {"train": 3, "dev": 2, "test": 2},
    "europarl-en-fr": {"train": 4, "dev": 2, "test": 2},
    "iwslt14-de-en": {"train": 44, "dev": 2, "test": 10},
    "multi30k-en-de": {"train": 5, "dev": 2, "test": 3},
    "tatoeba-en-de": {"train": 588, "dev": 6, "test": 6},
}


@pytest.mark.parametrize("name", get_args(DatasetName))
def test_each_corpus_becomes_aligned_files(site: "Site", name: DatasetName, tmp_path: Path) -> None:
    result = fetch_from(site, name, tmp_path)
    assert result.pairs == EXPECTED[name]
    assert set(result.trust.values()) == {"first use"}
    for split, count in result.pairs.items():
        for language in DATASETS[name].languages:
            assert len((tmp_path / f"{split}.{language}").read_text().splitlines()) == count
    assert json.loads((tmp_path / "dataset.json").read_text())["pairs"] == result.pairs
    assert not (tmp_path / ".work").exists()


def test_parts_are_in_the_order_of_the_table(site: "Site", tmp_path: Path) -> None:
    fetch_from(site, "wmt14-en-fr", tmp_path)
    stems = [line.split()[0] for line in (tmp_path / "train.fr").read_text().splitlines()]
    assert list(dict.fromkeys(stems)) == [
        "training/europarl-v7.fr-en",
        "commoncrawl.fr-en",
        "un/undoc.2000.fr-en",
        "training/news-commentary-v9.fr-en",
        "giga",
    ]
    assert (tmp_path / "test.en").read_text() == "test en 1 & more\ntest en 2 & more\n"


def test_every_23rd_talk_is_held_out(site: "Site", tmp_path: Path) -> None:
    fetch_from(site, "iwslt14-de-en", tmp_path)
    assert (tmp_path / "dev.de").read_text() == "talk de 21\ntalk de 44\n"
    assert (tmp_path / "train.en").read_text().startswith("T\ntalk en 0\n")


def test_translations_of_one_sentence_stay_together(site: "Site", tmp_path: Path) -> None:
    fetch_from(site, "tatoeba-en-de", tmp_path)
    held = set((tmp_path / "test.en").read_text().splitlines())
    assert not held & set((tmp_path / "train.en").read_text().splitlines())
    assert (tmp_path / "ABOUT.txt").read_text() == "Attribution: tatoeba"


def test_download_resumes_across_runs(site: "Site", tmp_path: Path) -> None:
    site.cut_after = [300]
    site.failures = []
    site.files = archives("iwslt14-de-en")
    dataset = without_published_checksums(DATASETS["iwslt14-de-en"], site.url)
    with pytest.raises(
        DataError, match=r"(?s)de-en\.tgz cannot be downloaded.*downloaded part is kept"
    ):
        fetch(dataset, tmp_path, pauses=())
    fetch(dataset, tmp_path, pauses=())
    assert [request.get("range") for request in site.requests] == [None, "bytes=300-"]


def test_fetch_reads_archives_from_a_directory(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    for name, content in archives("tatoeba-en-de").items():
        (tmp_path / "here" / name).write_bytes(content)
    result = fetch(DATASETS["tatoeba-en-de"], tmp_path / "out", source=tmp_path / "here")
    assert result.pairs == EXPECTED["tatoeba-en-de"]
    again = fetch(DATASETS["tatoeba-en-de"], tmp_path / "out", source=tmp_path / "here")
    assert (again.pairs, again.trust) == (result.pairs, {})


def test_fetch_names_archives_missing_from_a_directory(tmp_path: Path) -> None:
    (tmp_path / "dev.tgz").touch()
    with pytest.raises(DataError) as error:
        fetch(DATASETS["wmt14-en-de"], tmp_path / "out", source=tmp_path)
    message = str(error.value)
    assert "lacks training-parallel-europarl-v7.tgz, training-parallel-commoncrawl.tgz" in message
    assert "https://data.statmt.org/wmt19/translation-task/dev.tgz" in message


def test_fetch_downloads_from_a_mirror(site: "Site", tmp_path: Path) -> None:
    site.files = {f"pub/{name}": content for name, content in archives("iwslt14-de-en").items()}
    result = fetch(DATASETS["iwslt14-de-en"], tmp_path, mirror=f"{site.url}/pub/", pauses=())
    assert result.pairs == EXPECTED["iwslt14-de-en"]


def test_error_without_internet_connection_lists_addresses(
    unused_address: str, tmp_path: Path
) -> None:
    dataset = without_published_checksums(DATASETS["wmt14-en-de"], unused_address)
    with pytest.raises(DataError) as error:
        fetch(dataset, tmp_path, pauses=())
    message = str(error.value)
    assert "refused" in message
    assert "give that directory as `source`" in message
    assert message.count(unused_address) == 1 + len(dataset.archives)


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_published_checksum_is_compared(site: "Site", tmp_path: Path, kind: str) -> None:
    site.files = archives("iwslt14-de-en")
    right = hashlib.new(kind, site.files["de-en.tgz"]).hexdigest()
    dataset = DATASETS["iwslt14-de-en"]

    def pinned(checksum: str) -> Dataset:
        archive = Archive(url=f"{site.url}/de-en.tgz", **{kind: checksum})
        source, target = (
            dataclasses.replace(part, archive=archive) for part in dataset.splits["train"][0]
        )
        return dataclasses.replace(dataset, splits={"train": ((source, target),)})

    with pytest.raises(DataError, match=rf"its {kind} is not 0000.*published.*delete it"):
        fetch(pinned("0" * len(right)), tmp_path, pauses=())
    assert not (tmp_path / "train.en").exists()
    assert fetch(pinned(right), tmp_path, pauses=()).trust == {"de-en.tgz": "published"}


def test_later_download_must_match_the_first(site: "Site", tmp_path: Path) -> None:
    fetch_from(site, "iwslt14-de-en", tmp_path)
    archive = tmp_path / "downloads/de-en.tgz"
    recorded = (tmp_path / "downloads/SHA256SUMS").read_text()
    assert recorded == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  de-en.tgz\n"
    (tmp_path / "dataset.json").unlink()
    assert fetch_from(site, "iwslt14-de-en", tmp_path).trust == {"de-en.tgz": "recorded earlier"}
    (tmp_path / "dataset.json").unlink()
    archive.write_bytes(archive.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=r"recorded in SHA256SUMS by an earlier"):
        fetch_from(site, "iwslt14-de-en", tmp_path)


def test_damaged_download_is_not_recorded_as_trusted(site: "Site", tmp_path: Path) -> None:
    dataset = without_published_checksums(DATASETS["iwslt14-de-en"], site.url)
    site.files["de-en.tgz"] = b"<html>Please log in</html>"
    with pytest.raises(DataError, match=r"de-en\.tgz is damaged or not an archive.*delete it"):
        fetch(dataset, tmp_path, pauses=())
    (tmp_path / "downloads/de-en.tgz").unlink()
    assert fetch_from(site, "iwslt14-de-en", tmp_path).trust == {"de-en.tgz": "first use"}


def test_sides_of_unequal_length_are_rejected(tmp_path: Path) -> None:
    members = {
        "de-en/train.tags.de-en.de": lines("a", 5),
        "de-en/train.tags.de-en.en": lines("b", 4),
    }
    (tmp_path / "de-en.tgz").write_bytes(tar(dict(members)))
    dataset = DATASETS["iwslt14-de-en"]
    only = dataclasses.replace(dataset, splits={"train": dataset.splits["train"]})
    with pytest.raises(DataError, match=r"tags\.de-en\.de has more sentences than .*after 4"):
        fetch(only, tmp_path / "out", source=tmp_path)
    assert not (tmp_path / "out/train.de").exists()


def test_output_with_another_corpus_is_rejected(site: "Site", tmp_path: Path) -> None:
    fetch_from(site, "iwslt14-de-en", tmp_path)
    with pytest.raises(DataError, match="holds iwslt14-de-en; choose another `output`"):
        fetch_from(site, "tatoeba-en-de", tmp_path)


def test_rules_assign_splits() -> None:
    assert [EveryNth(3).split_of(i, b"") for i in range(4)] == ["train", "train", "dev", "train"]
    counts = [ByHash(10).split_of(0, b"%d" % i) for i in range(5000)]
    assert 400 < counts.count("dev") < 600
    assert 400 < counts.count("test") < 600


def test_the_table_is_complete() -> None:
    assert set(DATASETS) == set(get_args(DatasetName))
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.splits["train"]
        names = [archive.name for archive in dataset.archives]
        assert len(set(names)) == len(names)
        assert all(archive.url.startswith("https://") for archive in dataset.archives)
        assert all(len(a.sha256) == 64 for a in dataset.archives if a.sha256)
