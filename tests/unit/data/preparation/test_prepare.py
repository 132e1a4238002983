"""Preparation as a library: results, resuming, errors. Integration tests kill real processes."""

import dataclasses
import io
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transept.data.cleaning import Cleaning
from transept.data.config import SubwordSampling
from transept.data.preparation import formats
from transept.data.preparation import prepare as preparing
from transept.data.preparation.formats import Jsonl, LinePair, Tmx, Tsv
from transept.data.preparation.journal import JOURNAL, partial_directory
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Corpus, Manifest
from transept.errors import ConfigError, DataError
from transept.progress import Watch
from transept.runtime.storage import unsealed
from transept.text.spans import MASKS
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer
from transept.text.variation import Variation

ROWS = 10
"""Rows per chunk, small enough that the text has several chunks."""

Pairs = list[tuple[str, str]]

HOLDER = """
import sys
from collections.abc import Callable
from pathlib import Path
from transept.data.preparation.journal import locked

with locked(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "CHUNK_ROWS", ROWS)


@pytest.fixture
def job(
    tmp_path: Path, tokenizer_directory: Path, sentence_pairs: Callable[[int], Pairs]
) -> Preparation:
    """Pairs that include every reason for dropping."""
    pairs = sentence_pairs(120)
    pairs[15] = ("", "nothing")
    pairs[37] = pairs[4]
    pairs[90] = ("a", "the house " * 20)
    english = "".join(f"{source}\n" for source, _ in pairs).encode()
    german = "".join(f"{target}\n" for _, target in pairs).encode()
    (tmp_path / "x.en").write_bytes(english)
    (tmp_path / "x.de").write_bytes(german.replace(b"70\n", b"\xff70\n"))
    return Preparation(
        inputs=(LinePair(tmp_path / "x.en", tmp_path / "x.de"),),
        tokenizer=tokenizer_directory,
        output=tmp_path / "corpus",
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


class Interruption(BaseException):
    """Simulates a signal: an exception that the code does not catch."""


def interrupted_at(row: int) -> Watch:
    chunks = itertools.count(1)

    def watch(done: int, total: int | None) -> None:
        if next(chunks) * ROWS >= row:
            raise Interruption

    return watch


def committed_rows(job: Preparation) -> int:
    table = unsealed((partial_directory(job.output) / JOURNAL).read_bytes())
    return int(table["state"]["rows"])


def test_dropped_pairs_are_counted_and_listed(job: Preparation) -> None:
    manifest = prepare(job, workers=0)
    assert manifest.dropped == {"encoding": 1, "empty": 1, "ratio": 1, "duplicate": 1}
    assert (manifest.read, manifest.pairs) == (120, 116)
    rows = (job.output / "dropped.tsv").read_text().splitlines()
    (english, german) = (str(path) for path in job.inputs[0].paths)
    assert [row.split("\t")[:3] for row in rows] == [
        ["file", "line", "reason"],
        [english, "16", "empty"],
        [english, "38", "duplicate"],
        [german, "71", "encoding"],
        [english, "91", "ratio"],
    ]


def test_result_does_not_depend_on_workers(job: Preparation, tmp_path: Path) -> None:
    prepare(job, workers=0)
    again = dataclasses.replace(job, output=tmp_path / "again")
    prepare(again, workers=2)
    assert contents(again.output) == contents(job.output)


def test_single_chunk_starts_no_worker(
    job: Preparation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "CHUNK_ROWS", 1000)
    monkeypatch.setattr("transept.data.preparation.prepare.Workers", None)
    prepare(job, workers=2)
    again = dataclasses.replace(job, output=tmp_path / "again")
    prepare(again, workers=0)
    assert contents(again.output) == contents(job.output)


@pytest.mark.parametrize("row", [1, 31, 60, 120])
def test_interrupted_run_is_resumed(job: Preparation, tmp_path: Path, row: int) -> None:
    prepare(job, workers=0)
    again = dataclasses.replace(job, output=tmp_path / "again")
    with pytest.raises(Interruption):
        prepare(again, workers=0, watch=interrupted_at(row), commit_seconds=0)
    assert not again.output.exists()
    if row > ROWS:
        assert committed_rows(again) >= row - ROWS - 1
    prepare(again, workers=0)
    assert contents(again.output) == contents(job.output)
    assert not partial_directory(again.output).exists()


def test_run_interrupted_at_every_chunk_gives_the_same_corpus(
    job: Preparation, tmp_path: Path
) -> None:
    prepare(job, workers=0)
    again = dataclasses.replace(job, output=tmp_path / "again")
    stops = 0
    while not again.output.exists():
        try:
            prepare(again, workers=0, watch=interrupted_at(stops * 10), commit_seconds=0)
        except Interruption:
            stops += 1
    assert stops > 10
    assert contents(again.output) == contents(job.output)


def test_worker_error_is_raised_in_parent(job: Preparation) -> None:
    strict = dataclasses.replace(job, cleaning=Cleaning(bad_encoding="stop"))
    with pytest.raises(DataError, match=r"x\.de, line 71: not UTF-8"):
        prepare(strict, workers=1)


def test_finished_corpus_is_not_prepared_again(job: Preparation) -> None:
    manifest = prepare(job, workers=0)
    before = (job.output / "source.ids").stat().st_mtime_ns
    partial_directory(job.output).mkdir()  # as a kill right after the last rename leaves it
    assert prepare(job, workers=0) == manifest
    assert (job.output / "source.ids").stat().st_mtime_ns == before
    assert not partial_directory(job.output).exists()


def rewrite(path: Path, old: bytes, new: bytes) -> None:
    """Change a file in place, with another modification time."""
    path.write_bytes(path.read_bytes().replace(old, new))
    os.utime(path, ns=(1, 1))


def test_changed_text_of_the_same_length_is_rejected(job: Preparation) -> None:
    before = prepare(job, workers=0)
    source = job.inputs[0].paths[0]
    rewrite(source, b"house", b"mouse")
    with pytest.raises(DataError, match=f"prepared from other text: {source} has"):
        prepare(job, workers=0)
    assert prepare(job, workers=0, restart=True).hash != before.hash
    prepare(job, workers=0)


def test_copied_inputs_are_recognized_by_their_text(
    job: Preparation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is read only if a time differs, in chunks of any size, with progress reports."""
    before = prepare(job, workers=0)
    monkeypatch.setattr(formats, "CHUNK_ROWS", 7)
    reported: list[tuple[int, int | None]] = []
    assert prepare(job, workers=0, watch=lambda *count: reported.append(count)) == before
    assert not reported
    for path in job.inputs[0].paths:
        rewrite(path, b"", b"")
    assert prepare(job, workers=0, watch=lambda *count: reported.append(count)) == before
    assert reported[-1][0] == reported[-1][1]


def test_corpus_without_text_record_is_accepted(job: Preparation) -> None:
    """Written by the first version: only the sizes of its inputs can be compared."""
    before = dataclasses.replace(prepare(job, workers=0), text=None)
    before.save(job.output)
    os.utime(job.inputs[0].paths[0], ns=(1, 1))
    assert prepare(job, workers=0) == before
    assert len(Corpus.open(job.output, verify=True)) == before.pairs


def test_changed_settings_are_rejected_and_named(job: Preparation) -> None:
    prepare(job, workers=0)
    other = dataclasses.replace(job, cleaning=Cleaning(max_ratio=0.0))
    with pytest.raises(DataError, match=r"(?s)`max_ratio`: 3\.0 -> 0\.0.*`restart`"):
        prepare(other, workers=0)
    assert prepare(other, workers=0, restart=True).pairs == 117
    assert Corpus.open(job.output, verify=True).manifest.settings.cleaning.max_ratio == 0


def test_an_interrupted_restart_is_resumed_without_restart(job: Preparation) -> None:
    prepare(job, workers=0)
    other = dataclasses.replace(job, cleaning=Cleaning(max_ratio=0))
    with pytest.raises(Interruption):
        prepare(other, workers=0, restart=True, watch=interrupted_at(60), commit_seconds=0)
    assert committed_rows(other) >= 50
    assert prepare(other, workers=0).pairs == 117


def test_unfinished_run_with_other_settings_is_rejected(job: Preparation) -> None:
    with pytest.raises(Interruption):
        prepare(job, workers=0, watch=interrupted_at(50), commit_seconds=0)
    other = dataclasses.replace(job, cleaning=Cleaning(max_tokens=99))
    with pytest.raises(DataError, match=r"(?s)unfinished.*`max_tokens`: 250 -> 99.*`restart`"):
        prepare(other, workers=0)
    assert prepare(other, workers=0, restart=True).pairs == 116


def test_unfinished_run_of_other_text_is_rejected(job: Preparation) -> None:
    with pytest.raises(Interruption):
        prepare(job, workers=0, watch=interrupted_at(50), commit_seconds=0)
    english = job.inputs[0].paths[0]
    english.write_bytes(english.read_bytes().replace(b"house", b"HOUSE"))
    with pytest.raises(DataError, match=r"inputs have changed.*`restart`"):
        prepare(job, workers=0)


def test_damaged_journal_is_rejected(job: Preparation) -> None:
    with pytest.raises(Interruption):
        prepare(job, workers=0, watch=interrupted_at(50), commit_seconds=0)
    journal = partial_directory(job.output) / "journal.json"
    journal.write_text(journal.read_text()[:50])
    with pytest.raises(DataError, match=r"journal\.json is damaged.*`restart`"):
        prepare(job, workers=0)


def test_unfinished_run_with_lost_files_is_rejected(job: Preparation) -> None:
    with pytest.raises(Interruption):
        prepare(job, workers=0, watch=interrupted_at(50), commit_seconds=0)
    (partial_directory(job.output) / "corpus/target.ids").unlink()
    with pytest.raises(DataError, match=r"target\.ids is shorter"):
        prepare(job, workers=0)


def test_second_concurrent_run_is_rejected(job: Preparation) -> None:
    directory = partial_directory(job.output)
    words = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(DataError, match=f"another process .*, process {process.pid} on "):
            prepare(job, workers=0)
        process.communicate()
    assert prepare(job, workers=0).pairs == 116


def test_directory_with_other_files_is_not_changed(job: Preparation) -> None:
    job.output.mkdir()
    (job.output / "thesis.tex").write_text("years of work")
    for restart in (False, True):
        with pytest.raises(DataError, match="is not a prepared corpus"):
            prepare(job, workers=0, restart=restart)
    assert (job.output / "thesis.tex").exists()


def test_an_empty_directory_is_filled(job: Preparation) -> None:
    job.output.mkdir()
    assert prepare(job, workers=0).pairs == 116


def test_preparation_without_kept_pairs_raises(job: Preparation) -> None:
    tight = dataclasses.replace(job, cleaning=Cleaning(max_tokens=2))
    with pytest.raises(DataError, match=r"none of the 120 pairs was kept \(1 encoding, 1 empty"):
        prepare(tight, workers=0)
    assert prepare(job, workers=0).pairs == 116


def test_error_without_kept_pairs_explains_the_first_line(job: Preparation, tmp_path: Path) -> None:
    (tmp_path / "commas.tsv").write_text("a,b\nc,d\n")
    wrong = dataclasses.replace(job, inputs=(Tsv(tmp_path / "commas.tsv"),))
    with pytest.raises(DataError, match=r"commas.tsv, line 1: not in .*: 1 of 2 columns"):
        prepare(wrong, workers=0)


def test_empty_inputs_are_rejected(job: Preparation, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    empty = dataclasses.replace(job, inputs=(Tsv(tmp_path / "empty.tsv"),))
    with pytest.raises(DataError, match="the inputs are empty"):
        prepare(empty, workers=0)


def test_file_name_need_not_be_utf_8(job: Preparation, tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x-\xff.tsv"))
    odd.write_text("house\tHaus\nalone\n")
    prepare(dataclasses.replace(job, inputs=(Tsv(odd),)), workers=0)
    assert os.fsencode(odd) in (job.output / "dropped.tsv").read_bytes()
    assert Corpus.open(job.output).manifest.settings.inputs[0].paths == (str(odd),)


def test_duplicates_can_be_kept(job: Preparation) -> None:
    lax = dataclasses.replace(job, cleaning=Cleaning(drop_duplicates=False))
    assert prepare(lax, workers=0).pairs == 117


def test_all_formats_together(job: Preparation, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("tsv one\ttsv eins\n")
    (tmp_path / "x.jsonl").write_text('{"en": "json one", "de": "json eins"}\n')
    segments = "".join(
        f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>'
        for code, text in (("en", "tmx one"), ("de", "tmx eins"))
    )
    (tmp_path / "x.tmx").write_text(f"<tmx><body><tu>{segments}</tu></body></tmx>")
    many = dataclasses.replace(
        job,
        inputs=(
            Tsv(tmp_path / "x.tsv"),
            Jsonl(tmp_path / "x.jsonl", ("en", "de")),
            Tmx(tmp_path / "x.tmx", ("en", "de")),
            *job.inputs,
        ),
    )
    manifest = prepare(many, workers=0)
    assert manifest.pairs == 119
    assert [each.format for each in manifest.settings.inputs] == ["tsv", "jsonl", "tmx", "lines"]


def test_corpus_can_be_read_from_standard_input(
    job: Preparation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pipe(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    text = b"".join(b"house %d\tHaus %d\n" % (i, i) for i in range(60))
    piped = dataclasses.replace(job, inputs=(Tsv(Path("-")),))
    pipe(text)
    with pytest.raises(Interruption):
        prepare(piped, workers=0, watch=interrupted_at(30), commit_seconds=0)
    pipe(text.replace(b"house 3\t", b"mouse 3\t"))
    with pytest.raises(DataError, match="inputs have changed"):
        prepare(piped, workers=0)
    pipe(text)
    assert prepare(piped, workers=0).pairs == 60
    pipe(text)
    with pytest.raises(DataError, match="from a pipe cannot be compared"):
        prepare(piped, workers=0)


def test_each_side_can_have_its_own_tokenizer(job: Preparation, tmp_path: Path) -> None:
    words = ["Haus", "Baum", "der", "die", "das", "ist", "und", "ein"]
    other = train_tokenizer([" ".join(words)] * 9, vocab_size=290)
    other.save(tmp_path / "german")
    prepare(dataclasses.replace(job, target_tokenizer=tmp_path / "german"), workers=0)
    corpus = Corpus.open(job.output)
    assert corpus.target_tokenizer != corpus.source_tokenizer
    assert corpus.manifest.target.vocab_size == 290
    assert corpus.manifest.settings.target_tokenizer == other.sha256


def test_progress_is_reported_in_bytes(job: Preparation) -> None:
    seen: list[tuple[int, int | None]] = []
    prepare(job, workers=0, watch=lambda *count: seen.append(count))
    total = sum(path.stat().st_size for path in job.inputs[0].paths)
    assert seen[-1] == (total, total)
    assert len(seen) == 120 // ROWS


def test_error_names_a_missing_input(job: Preparation, tmp_path: Path) -> None:
    missing = dataclasses.replace(job, inputs=(Tsv(tmp_path / "missing.tsv"),))
    with pytest.raises(DataError, match=r"missing\.tsv: cannot be read"):
        preparing.prepare(missing, workers=0)


def test_sampled_subwords_do_not_depend_on_workers_or_interruptions(
    job: Preparation, tmp_path: Path
) -> None:
    sampling = SubwordSampling(subword_dropout=0.1, copies=3)
    jobs = [
        dataclasses.replace(job, sampling=sampling, output=tmp_path / str(number))
        for number in range(3)
    ]
    once = prepare(jobs[0], workers=0)
    assert prepare(jobs[1], workers=2).hash == once.hash
    with pytest.raises(Interruption):
        prepare(jobs[2], workers=0, watch=interrupted_at(50), commit_seconds=0)
    assert prepare(jobs[2], workers=0).hash == once.hash
    other = dataclasses.replace(sampling, seed=2)
    changed = dataclasses.replace(job, sampling=other, output=tmp_path / "other")
    assert prepare(changed, workers=0).hash != once.hash


def test_copies_are_different_segmentations_of_the_same_pairs(
    job: Preparation, tmp_path: Path
) -> None:
    plain = prepare(job, workers=0)
    sampling = SubwordSampling(subword_dropout=0.2, copies=2)
    sampled = prepare(
        dataclasses.replace(job, sampling=sampling, output=tmp_path / "sampled"), workers=0
    )
    assert (sampled.pairs, sampled.copies) == (2 * plain.pairs, 2)
    assert (sampled.read, sampled.dropped) == (plain.read, plain.dropped)
    tokenizer = Tokenizer.load(job.tokenizer)

    def texts(directory: Path) -> list[tuple[str, str]]:
        corpus = Corpus.open(directory, verify=True)
        return [
            (tokenizer.decode(corpus.source(i)), tokenizer.decode(corpus.target(i)))
            for i in range(len(corpus))
        ]

    pairs = texts(job.output)
    assert sorted(texts(tmp_path / "sampled")) == sorted(pairs * 2)
    # The copies of a chunk follow each other.
    corpus = Corpus.open(tmp_path / "sampled")
    first = texts(tmp_path / "sampled")
    n = next(i for i in range(1, len(first)) if first[i] == first[0])
    assert first[:n] == first[n : 2 * n]
    assert any(list(corpus.source(i)) != list(corpus.source(n + i)) for i in range(n))


def test_other_sampling_is_a_changed_setting(job: Preparation) -> None:
    prepare(job, workers=0)
    sampling = SubwordSampling(subword_dropout=0.1)
    with pytest.raises(DataError, match=r"`subword_dropout`: none -> 0\.1"):
        prepare(dataclasses.replace(job, sampling=sampling), workers=0)


def test_other_variation_is_a_changed_setting(job: Preparation, tmp_path: Path) -> None:
    masking = tmp_path / "masking"
    train_tokenizer(["das Haus the house"] * 9, vocab_size=290, masks=MASKS).save(masking)
    varied = dataclasses.replace(
        job, tokenizer=masking, variation=Variation(names=0.5), languages=("en", "de")
    )
    settings = prepare(varied, workers=0).settings
    assert (settings.variation, settings.languages) == (Variation(names=0.5), ("en", "de"))
    assert Manifest.load(job.output).settings == settings
    with pytest.raises(DataError, match=r"`vary\.names`: 0\.5 -> 0\.2\n"):
        prepare(dataclasses.replace(varied, variation=Variation(names=0.2)), workers=0)
    with pytest.raises(DataError, match=r"`languages`: en de -> de en\n"):
        prepare(dataclasses.replace(varied, languages=("de", "en")), workers=0)


def test_variation_needs_a_vocabulary_with_masks(job: Preparation) -> None:
    with pytest.raises(ConfigError, match=r"has no masks, .*; train one with `masks`"):
        prepare(dataclasses.replace(job, variation=Variation()), workers=0)
