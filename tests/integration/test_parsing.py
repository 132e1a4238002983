"""Parsing from end to end: generated trees, prepared, trained on, parsed and scored."""

import io
import json
import random
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.workshop import Workshop, run

import transept
from transept.errors import ConfigError, DataError
from transept.tasks.parsing.linearisation import Fault
from transept.text.symbols import Symbols
from transept.text.tokenizer import Tokenizer
from transept.text.trees import parse_tree, read_trees

CONFIG = """
[model]
source_vocab_size = 0
vocab_size = 0
tied_embeddings = "two-way"
n_layers = 1
d_model = 64
d_ff = 128
n_heads = 4
dropout = 0.0

[data]
train = [{{path = "{directory}/train"}}]
dev = "{directory}/dev"
workers = 0

[batch]
layout = "by_length"
source_tokens = 500
target_tokens = 500
max_length = 120

[schedule]
warmup_steps = 60
factor = 0.3

[training]
max_steps = {steps}
log_every = 50

[validation]
every_steps = 100
"""
NOUNS, VERBS = ["cat", "dog", "hen", "mat", "owl"], ["sees", "finds", "likes"]
HOSTILE = ["( ) (S )S XX", "🐈 \u202e 10\u00a0000", "</s> <pad> -LRB-", "a " * 50, "x"]


@dataclass(frozen=True)
class Bank:
    directory: Path

    @property
    def test(self) -> Path:
        return self.directory / "test.mrg"

    @property
    def vocabulary(self) -> Path:
        return self.directory / "train" / "target_tokenizer"


def noun_phrase(chance: random.Random, depth: int) -> str:
    """The word after a noun phrase decides whether it is wrapped, which requires lookahead."""
    noun = f"(DT the) (NN {chance.choice(NOUNS)})"
    kind = chance.choice(["noun", "with", "that"]) if depth else "noun"
    if kind == "noun":
        return f"(NP {noun})"
    if kind == "with":
        return f"(NP (NP {noun}) (PP (IN with) {noun_phrase(chance, depth - 1)}))"
    verb = f"(VP (VBZ {chance.choice(VERBS)}) {noun_phrase(chance, depth - 1)})"
    return f"(NP (NP {noun}) (SBAR (WDT that) (S {verb})) (, ,))"


def sentence(chance: random.Random) -> str:
    verb = f"(VP (VBZ {chance.choice(VERBS)}) {noun_phrase(chance, 1)})"
    return f"(S {noun_phrase(chance, 1)} {verb} (. .))"


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    directory = tmp_path_factory.mktemp("bank")
    chance = random.Random(1)
    for name, n in (("train", 1500), ("dev", 40), ("test", 60)):
        trees = "".join(f"{sentence(chance)}\n" for _ in range(n))
        (directory / f"{name}.mrg").write_text(trees)
    vocabulary = directory / "vocabulary"
    learn = ["tokenizer", "train", "--trees", directory / "train.mrg", "--vocab-size", "320"]
    assert run(*learn, "--output", vocabulary) == 0
    for name in ("train", "dev"):
        prepare = ["data", "prepare", "--trees", directory / f"{name}.mrg"]
        known = [] if name == "train" else ["--target-tokenizer", Bank(directory).vocabulary]
        output = directory / name
        assert run(*prepare, "--tokenizer", vocabulary, *known, "--output", output) == 0
    return Bank(directory)


def train(bank: Bank, name: str, steps: int) -> Path:
    config = bank.directory / f"{name}.toml"
    config.write_text(CONFIG.format(directory=bank.directory, steps=steps))
    assert run("train", config, "--output", bank.directory / name) == 0
    return bank.directory / name


@pytest.fixture(scope="module")
def learnt(bank: Bank) -> Path:
    """A parser that has learnt the grammar."""
    return train(bank, "learnt", 300)


@pytest.fixture(scope="module")
def parser(bank: Bank) -> Path:
    """A briefly trained parser: its output is no longer random."""
    return train(bank, "begun", 60)


@pytest.fixture(scope="module")
def novice(bank: Bank) -> Path:
    """An untrained parser: a single step with almost no learning rate."""
    return train(bank, "novice", 1)


def test_quality_check_of_trees_is_rejected(
    bank: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "parser.toml"
    config.write_text(CONFIG.format(directory=bank.directory, steps=1))
    bleu = "validation.bleu_every_steps=1"
    assert run("train", config, bleu, "--output", tmp_path / "run") == 2
    errors = " ".join(capsys.readouterr().err.split())
    assert f"needs a development set of text, and {bank.directory / 'dev'} has trees" in errors


def f1(report: dict[str, dict[str, dict[str, float]]]) -> float:
    return report["all"]["whole"]["f1"]


@pytest.mark.slow
def test_parser_learns_the_grammar(
    bank: Bank, learnt: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert run("parse", "--model", learnt, "--trees", bank.test, "--beam-size", "4") == 0
    predicted = bank.directory / "predicted.mrg"
    predicted.write_text(capfd.readouterr().out)
    assert run("evalb", bank.test, predicted, "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert report["all"]["evalb"]["valid"] == 60
    assert report["all"]["evalb"]["tagging_accuracy"] == 100.0
    assert f1(report) > 60
    assert run("evalb", bank.test, predicted) == 0
    assert f"{f1(report):.2f}" in capfd.readouterr().out


def test_run_config_contains_the_vocabulary_sizes(bank: Bank, parser: Path) -> None:
    stored = (parser / "config.toml").read_text()
    assert "source_vocab_size = 320" in stored
    assert f"vocab_size = {Symbols.load(bank.vocabulary).vocab_size}" in stored


def test_random_weights_give_trees_only(novice: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    search = ["--beam-size", "3", "--max-length-extra", "30"]
    assert run("parse", "--model", novice, *search, *HOSTILE, "") == 0
    *lines, last = capfd.readouterr().out.split("\n")[:-1]
    assert last == ""
    for line, words in zip(lines, HOSTILE, strict=True):
        expected = [word.replace("(", "-LRB-").replace(")", "-RRB-") for word in words.split(" ")]
        assert list(parse_tree(line).words) == [word for word in expected if word]


def test_unconstrained_outputs_are_counted_and_repaired(
    novice: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    words = ["--unconstrained", "--beam-size", "2", "--max-length-extra", "5", "--json"]
    assert run("parse", "--model", novice, *words, "the cat sees the dog .", "the hen") == 0
    shown = capfd.readouterr()
    assert "2 of 2 outputs (100.00%) were not trees, and were repaired:" in shown.err
    described = [json.loads(line) for line in shown.out.splitlines()]
    assert all(one["outputs"][0]["fault"] in [fault.value for fault in Fault] for one in described)
    assert parse_tree(described[1]["tree"]).words == ("the", "hen")


def test_output_formats(parser: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    texts = ["the cat sees the dog .", "the hen with the <&> likes the mat ."]
    picture = tmp_path / "trees.svg"
    usual = ["parse", "--model", parser, "--beam-size", "3", *texts]
    capfd.readouterr()
    assert run(*usual, "--svg", picture) == 0
    plain = capfd.readouterr().out.splitlines()
    assert [" ".join(parse_tree(line).words) for line in plain] == texts
    root = ElementTree.fromstring(picture.read_text())
    assert [each.text for each in root.iter() if each.get("class") == "ink"] == [
        *texts[0].split(),
        *texts[1].split(),
    ]
    assert run(*usual, "--indented") == 0
    shown = capfd.readouterr().out
    assert [str(parse_tree(text)) for text in shown.strip().split("\n\n")] == plain
    assert shown.splitlines()[0] == "(S"
    assert run(*usual, "--scores") == 0
    score, confidence, tree = capfd.readouterr().out.splitlines()[0].split("\t")
    assert (float(score) < 0, float(confidence) < 0, tree) == (True, True, plain[0])
    assert run(*usual, "--n-best", "2") == 0
    assert capfd.readouterr().out.splitlines()[1].startswith("0 ||| (")
    nothing = ["parse", "--model", parser, "--beam-size", "2", ""]
    for option, line in (
        ("--n-best=2", "0 |||  ||| LogP= 0.000000 ||| 0.000000"),  # as `transept translate` has it
        ("--scores", "0.000000\t0.000000\t"),
        ("--indented", ""),
    ):
        assert run(*nothing, option) == 0
        assert capfd.readouterr().out == f"{line}\n"


def test_several_trees_cannot_be_indented(parser: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("parse", "--model", parser, "the cat", "--indented", "--n-best=2") == 2
    assert "omit --indented" in capfd.readouterr().err


def test_trees_over_several_lines_are_scored_when_cleaned(
    parser: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gold = tmp_path / "gold.mrg"
    gold.write_text(
        "( (S\n (NP-SBJ (DT the) (NN cat))\n (VP (VBZ sees) (NP (-NONE- *)))\n (. .)) )"
    )
    capfd.readouterr()
    assert run("parse", "--model", parser, "--trees", gold, "--beam-size", 2) == 0
    (tmp_path / "out").write_text(capfd.readouterr().out)
    assert run("evalb", gold, tmp_path / "out") == 3
    assert "--clean reads them" in capfd.readouterr().err
    assert run("evalb", "--clean", gold, tmp_path / "out", "--json") == 0
    out, said = capfd.readouterr()
    assert json.loads(out)["all"]["evalb"]["valid"] == 1
    assert "have a root" not in said
    gold.write_text(" ".join(gold.read_text().split()))
    assert run("evalb", gold, tmp_path / "out") == 0
    assert "warning: only the gold trees have a root bracket" in capfd.readouterr().err


def test_confident_trees_can_be_used_as_a_treebank(
    bank: Bank, parser: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = tmp_path / "words.txt"
    lines = [" ".join(tree.words) for tree in read_trees(bank.test)][:20]
    words.write_text("\n".join([*lines, "dog dog . the the sees", ""]))
    usual = ["parse", "--model", parser, "--input", words, "--beam-size", "3"]
    capfd.readouterr()
    assert run(*usual, "--json") == 0
    found = [json.loads(line)["outputs"][0] for line in capfd.readouterr().out.splitlines()]
    least = sorted(one["confidence"] for one in found)[5]
    assert run(*usual, "--min-confidence", least) == 0
    shown = capfd.readouterr()
    assert shown.out.splitlines() == [one["tree"] for one in found if one["confidence"] >= least]
    assert "kept 16 of 21 trees (76.2%)" in shown.err
    parsed = tmp_path / "parsed.mrg"
    parsed.write_text(shown.out)
    prepare = ["data", "prepare", "--trees", parsed, "--tokenizer", bank.directory / "vocabulary"]
    known = ["--target-tokenizer", bank.vocabulary]
    assert run(*prepare, *known, "--output", tmp_path / "parsed") == 0


def test_plain_text_gives_a_warning(parser: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["parse", "--model", parser, "--beam-size", "1"]
    for sentences, warns in (
        (["the cat sees the dog ."], False),
        (["the cat sees the dog."], True),
        (["the cat sees the dog .", "the dog sees Mr."], False),
    ):
        capfd.readouterr()
        assert run(*words, *sentences) == 0
        assert ("look like plain text" in capfd.readouterr().err) == warns


def test_a_lone_dash_is_standard_input(
    parser: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat sleeps .\n")))
    capfd.readouterr()
    assert run("parse", "--model", parser, "--beam-size", "2", "-") == 0
    assert parse_tree(capfd.readouterr().out).words == ("the", "cat", "sleeps", ".")


def test_too_long_sentence_does_not_affect_others(
    parser: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    short, long = "the cat sees the dog .", "the cat that " * 70
    words = tmp_path / "words"
    words.write_text(f"{short}\n{long}\n{short}\n\n{long}\n{short}\n")
    usual = ["parse", "--model", parser, "--beam-size", "2", "--input", words]
    capfd.readouterr()
    assert run("parse", "--model", parser, "--beam-size", "2", short) == 0
    tree = capfd.readouterr().out.rstrip()
    assert run(*usual) == 3
    out, said = capfd.readouterr()
    assert out.split("\n") == [tree, "", tree, "", "", tree, ""]
    assert f"{words}, line 2: the sentence has 211 tokens, and the maximum is 120" in said
    assert f"{words}, line 5: the sentence has" in said
    assert "--max-source-length 211 parses it anyway" in said
    assert said.endswith("transept: too long, without a tree: 2 sentences, listed above\n")
    assert run(*usual, "--json") == 3
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["words"] for line in lines[:2]] == [short.split(), long.split()]
    assert [line["tree"] is None for line in lines] == [False, True, False, True, True, False]
    assert run(*usual, "--max-source-length", "211", "--max-length-extra", "1000") == 0
    assert capfd.readouterr().out.count("\n(") == 4


def test_all_too_long_sentences_are_reported(
    parser: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    encode_batch, sizes = Tokenizer.encode_batch, list[int]()

    def counted(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        sizes.append(len(texts))
        return encode_batch(tokenizer, texts)

    monkeypatch.setattr(Tokenizer, "encode_batch", counted)
    texts = ["the cat sleeps .", *["the cat that " * 70] * 9]
    assert run("parse", "--model", parser, "--beam-size", "2", *texts) == 3
    assert capfd.readouterr().err.count("the sentence has 211 tokens") == 9
    assert sizes == [10, 10]  # once to find all of them, and once without them


def test_python(parser: Path, trained: Path) -> None:
    model = transept.load_parser(parser)
    text = "the cat sees the dog ."
    one = model.parse(text, beam_size=2)
    assert parse_tree(str(one)) == one.tree
    assert (one.words, one.tree.tags[-2:]) == (tuple(text.split()), ("XX", "."))
    tags = ["A", "B", "C", "D", "E", "F"]
    same, empty = model.parse([text.split(), []], beam_size=2, tags=[tags, []])
    assert (same.tree.brackets, same.tree.tags) == (one.tree.brackets, tuple(tags))
    assert same.confidence == pytest.approx(one.confidence)
    assert (str(empty), empty.outputs) == ("", ())
    with pytest.raises(DataError, match="without words has no tree"):
        empty.tree  # noqa: B018
    with pytest.raises(DataError, match="contains a space"):
        model.parse([["a b"]])
    with pytest.raises(DataError, match="sentence 1 has 1 words and 2 tags"):
        model.parse(["a"], tags=[["X", "Y"]])
    with pytest.raises(ConfigError, match="is a parsing model, which writes trees"):
        transept.load(parser)
    with pytest.raises(ConfigError, match="did you mean 'beam_size'"):
        model.parse("a", beam_sise=2)  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="is not a parsing model"):
        transept.load_parser(trained)


def test_the_wrong_kind_of_model(
    parser: Path, trained: Path, workshop: Workshop, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("translate", "--model", parser, "a") == 2
    assert "use `load_parser` or `transept parse`" in capfd.readouterr().err
    assert run("visualize", "--model", parser, "a", "--output", workshop.directory / "a.svg") == 2
    assert "is a parsing model, which writes trees" in capfd.readouterr().err
    assert run("parse", "--model", trained, "a") == 2
    assert "is not a parsing model" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--trees", "{test}", "--tsv", "x"], 2, "cannot be combined with other inputs"),
        (["--trees", "{test}", "--target-tokenizer", "{vocabulary}"], 3, "is not a vocabulary of"),
        (["--trees", "-"], 2, "need a --target-tokenizer"),
        (["--trees", "/dev/null"], 3, "/dev/null: no trees found"),
        (
            ["--trees", "{test}", "--tags", "kept", "--target-tokenizer", "{symbols}"],
            2,
            "which uses XX; omit one of them",
        ),
    ],
)
def test_prepare_rejects_invalid_options(
    bank: Bank, words: list[str], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    vocabulary = bank.directory / "vocabulary"
    places = {"test": bank.test, "vocabulary": vocabulary, "symbols": bank.vocabulary}
    filled = [word.format(**places) for word in words]
    output = bank.directory / "refused"
    assert run("data", "prepare", *filled, "--tokenizer", vocabulary, "--output", output) == code
    assert message in capfd.readouterr().err


def test_a_run_can_start_from_another_parser(bank: Bank, parser: Path) -> None:
    config = bank.directory / "novice.toml"
    config.write_text(CONFIG.format(directory=bank.directory, steps=1))
    output = bank.directory / "tuned"
    assert run("train", config, "--init", parser / "checkpoints/step-00000060", "-o", output) == 0
