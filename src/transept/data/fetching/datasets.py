"""The public corpora that `transept data fetch` knows: where they lie and how they are cut.

A checksum stands here only where it has been published by others: sha256 by TensorFlow Datasets
and Hugging Face Datasets (in agreement), md5 by sacreBLEU, and for Multi30k the sha256 of the
files in its git repository. For the rest the first download is trusted and its sha256 written
down beside it (`transept.data.fetching.fetch`).
"""

import hashlib
from dataclasses import dataclass
from typing import Literal, Protocol

Reading = Literal["lines", "segments", "talks", "first column", "second column"]
"""How the sentences of a file are found; `transept.data.fetching.markup` has the code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """A file to download. It is kept under the last part of its address."""

    url: str
    sha256: str | None = None
    md5: str | None = None

    @property
    def name(self) -> str:
        """The file name, here and in a directory of archives."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Part:
    """Sentences of one language: a member of an archive, or all of a file that is no archive."""

    archive: Archive
    member: str | None
    reading: Reading = "lines"

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return f"{self.archive.name}:{self.member}" if self.member else self.archive.name


class Rule(Protocol):
    """Decides which split a training pair goes to."""

    def split_of(self, index: int, source: bytes) -> str:
        """The split of the pair number `index` (from 0) whose source sentence is `source`."""


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Every pair belongs to one split."""

    split: str = "train"

    def split_of(self, index: int, source: bytes) -> str:
        """Always the same."""
        return self.split


@dataclass(frozen=True, slots=True)
class EveryNth:
    """One pair in `n` is held out as dev, by its number: what is usual for IWSLT 2014."""

    n: int

    def split_of(self, index: int, source: bytes) -> str:
        """The n-th, 2n-th, … pair is dev."""
        return "dev" if (index + 1) % self.n == 0 else "train"


@dataclass(frozen=True, slots=True)
class ByHash:
    """One source sentence in `n` is held out as dev and one as test, with all its translations.

    By hash and not by number, so that a later, longer edition of the corpus has the same
    sentences held out.
    """

    n: int

    def split_of(self, index: int, source: bytes) -> str:
        """A pure function of the source sentence."""
        digest = hashlib.sha256(source).digest()
        bucket = int.from_bytes(digest[:8], "big") % self.n
        return {0: "dev", 1: "test"}.get(bucket, "train")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A parallel corpus: for each split the pairs of files it is made of, in order."""

    name: str
    title: str
    languages: tuple[str, str]
    splits: dict[str, tuple[tuple[Part, Part], ...]]
    held_out: Rule = KeepAll()
    about: Part | None = None
    terms: str

    @property
    def parts(self) -> tuple[Part, ...]:
        """Everything that is read, whatever the split."""
        parts = [part for pairs in self.splits.values() for pair in pairs for part in pair]
        return (*parts, self.about) if self.about else tuple(parts)

    @property
    def archives(self) -> tuple[Archive, ...]:
        """What must be downloaded, each file once."""
        return tuple(dict.fromkeys(part.archive for part in self.parts))


EUROPARL_V7 = Archive(
    url="https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    sha256="0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
COMMON_CRAWL = Archive(
    url="https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    sha256="c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
NEWS_COMMENTARY_V9 = Archive(
    url="https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    sha256="cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
UN_2000 = Archive(url="https://www.statmt.org/wmt13/training-parallel-un.tgz")
GIGA_FREN = Archive(url="https://www.statmt.org/wmt10/training-giga-fren.tar")
NEWS_DEV = Archive(
    url="https://data.statmt.org/wmt19/translation-task/dev.tgz",
    sha256="7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
)
NEWS_TEST_2014 = Archive(
    url="https://www.statmt.org/wmt14/test-full.tgz",
    md5="a8cd784e006feb32ac6f3d9ec7eb389a",
)
IWSLT_2014 = Archive(url="https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz")
TATOEBA = Archive(url="https://www.manythings.org/anki/deu-eng.zip")

MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
MULTI30K_SHA256 = {
    "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
}

WMT_TERMS = "WMT: free for research; Europarl has no known restriction"


def _both(
    archive: Archive, stem: str, languages: tuple[str, str], end: str = ""
) -> tuple[Part, Part]:
    """A pair of plain files in one archive that differ in the language at their end."""
    source, target = (Part(archive, f"{stem}.{language}{end}") for language in languages)
    return source, target


def _newstest_2014(foreign: str) -> tuple[Part, Part]:
    stem = f"test-full/newstest2014-{foreign}en"
    return (
        Part(NEWS_TEST_2014, f"{stem}-src.en.sgm", "segments"),
        Part(NEWS_TEST_2014, f"{stem}-ref.{foreign}.sgm", "segments"),
    )


def _iwslt(name: str) -> tuple[Part, Part]:
    source, target = (
        Part(IWSLT_2014, f"de-en/IWSLT14.{name}.de-en.{language}.xml", "segments")
        for language in ("de", "en")
    )
    return source, target


def _multi30k(stem: str) -> tuple[tuple[Part, Part]]:
    source, target = (
        Part(
            Archive(url=f"{MULTI30K}{stem}.{side}.gz", sha256=MULTI30K_SHA256[f"{stem}.{side}"]),
            None,
        )
        for side in ("en", "de")
    )
    return ((source, target),)


EN_DE, EN_FR = ("en", "de"), ("en", "fr")

WMT14_EN_DE = Dataset(
    name="wmt14-en-de",
    title="WMT 2014 English-German, 4.5 million pairs: the paper's; dev newstest2013",
    languages=EN_DE,
    splits={
        "train": (
            _both(EUROPARL_V7, "training/europarl-v7.de-en", EN_DE),
            _both(COMMON_CRAWL, "commoncrawl.de-en", EN_DE),
            _both(NEWS_COMMENTARY_V9, "training/news-commentary-v9.de-en", EN_DE),
        ),
        "dev": (_both(NEWS_DEV, "dev/newstest2013", EN_DE),),
        "test": (_newstest_2014("de"),),
    },
    terms=WMT_TERMS,
)
WMT14_EN_FR = Dataset(
    name="wmt14-en-fr",
    title="WMT 2014 English-French, 41 million pairs (the paper's 36 after cleaning)",
    languages=EN_FR,
    splits={
        "train": (
            _both(EUROPARL_V7, "training/europarl-v7.fr-en", EN_FR),
            _both(COMMON_CRAWL, "commoncrawl.fr-en", EN_FR),
            _both(UN_2000, "un/undoc.2000.fr-en", EN_FR),
            _both(NEWS_COMMENTARY_V9, "training/news-commentary-v9.fr-en", EN_FR),
            _both(GIGA_FREN, "giga-fren.release2.fixed", EN_FR, ".gz"),
        ),
        "dev": (_both(NEWS_DEV, "dev/newstest2013", EN_FR),),
        "test": (_newstest_2014("fr"),),
    },
    terms=WMT_TERMS,
)
IWSLT14_DE_EN = Dataset(
    name="iwslt14-de-en",
    title="IWSLT 2014 German-English, talks, 170 thousand pairs; test dev2010 to tst2012",
    languages=("de", "en"),
    splits={
        "train": (
            (
                Part(IWSLT_2014, "de-en/train.tags.de-en.de", "talks"),
                Part(IWSLT_2014, "de-en/train.tags.de-en.en", "talks"),
            ),
        ),
        "test": tuple(
            _iwslt(name)
            for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
        ),
    },
    held_out=EveryNth(23),
    terms="TED talks: CC BY-NC-ND 3.0",
)
MULTI30K_EN_DE = Dataset(
    name="multi30k-en-de",
    title="Multi30k English-German, image captions, 29 thousand pairs; test 2016",
    languages=EN_DE,
    splits={
        "train": _multi30k("train"),
        "dev": _multi30k("val"),
        "test": _multi30k("test_2016_flickr"),
    },
    terms="Multi30k: CC BY-NC-SA 4.0",
)
TATOEBA_EN_DE = Dataset(
    name="tatoeba-en-de",
    title="Tatoeba English-German, everyday sentences, some 300 thousand pairs, growing",
    languages=EN_DE,
    splits={
        "train": (
            (Part(TATOEBA, "deu.txt", "first column"), Part(TATOEBA, "deu.txt", "second column")),
        ),
    },
    held_out=ByHash(100),
    about=Part(TATOEBA, "_about.txt"),
    terms="CC BY 2.0, tatoeba.org and manythings.org/anki (see ABOUT.txt)",
)

DatasetName = Literal[
    "wmt14-en-de", "wmt14-en-fr", "iwslt14-de-en", "multi30k-en-de", "tatoeba-en-de"
]
DATASETS: dict[DatasetName, Dataset] = {
    "wmt14-en-de": WMT14_EN_DE,
    "wmt14-en-fr": WMT14_EN_FR,
    "iwslt14-de-en": IWSLT14_DE_EN,
    "multi30k-en-de": MULTI30K_EN_DE,
    "tatoeba-en-de": TATOEBA_EN_DE,
}
