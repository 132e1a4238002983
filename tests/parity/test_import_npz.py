"""Marian's own `.npz` models, against CTranslate2's converter for them."""

import dataclasses
import random
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.converters import MarianConverter

import transept
from transept.apps.convert.importing import import_model
from transept.errors import ConfigError
from transept.formats.ctranslate2_reader import read_ctranslate2
from transept.formats.foreign import build
from transept.formats.marian_reader import read_npz, read_vocabulary, sinusoids
from transept.text.tokenizer import EOS_ID
from transept.text.training import train_tokenizer

D, INNER, DEPTHS = 16, 32, (2, 1)
LINES = ["the old man reads a book in the house", "dogs and cats see a tree"] * 40
POST = {"transformer-preprocess": '""', "transformer-postprocess": "dan"}
PRE = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
}


def settings(**changes: str) -> dict[str, str]:
    """What Marian writes into `special:model.yml`, as far as it matters."""
    return {
        "type": "transformer",
        "enc-depth": str(DEPTHS[0]),
        "dec-depth": str(DEPTHS[1]),
        "transformer-heads": "2",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": "false",
        "transformer-ffn-activation": "swish",
        "transformer-postprocess-emb": "d",
        "transformer-guided-alignment-layer": "last",
        **{key.replace("_", "-"): value for key, value in changes.items()},
    }


def arrays(n: int, keys: dict[str, str]) -> dict[str, Any]:
    """A random network with Marian's names and shapes."""
    draw = np.random.default_rng(1)
    found: dict[str, Any] = {"Wemb": draw.normal(size=(n, D)) / 4}
    found["decoder_ff_logit_out_b"] = draw.normal(size=(1, n))
    pre = keys["transformer-preprocess"] == "n"
    norms = ["encoder_top", "decoder_top"] if pre else []
    for side, depth in zip(("encoder", "decoder"), DEPTHS, strict=True):
        for layer in (f"{side}_l{number + 1}" for number in range(depth)):
            for name in ("self", "context") if side == "decoder" else ("self",):
                for part in "qkvo":
                    found[f"{layer}_{name}_W{part}"] = draw.normal(size=(D, D)) / 4
                    found[f"{layer}_{name}_b{part}"] = draw.normal(size=(1, D))
                norms.append(f"{layer}_{name}_Wo")
            for part, shape in (("1", (D, INNER)), ("2", (INNER, D))):
                found[f"{layer}_ffn_W{part}"] = draw.normal(size=shape) / 4
                found[f"{layer}_ffn_b{part}"] = draw.normal(size=(1, shape[1]))
            norms.append(f"{layer}_ffn_ffn")
    for name in norms:
        suffix = "_pre" if pre and not name.endswith("top") else ""
        found[f"{name}_ln_scale{suffix}"] = 1 + draw.normal(size=(1, D)) / 4
        found[f"{name}_ln_bias{suffix}"] = draw.normal(size=(1, D)) / 4
    text = "".join(f"{key}: {value}\n" for key, value in keys.items()) + "\0"
    weights = {name: array.astype(np.float32) for name, array in found.items()}
    return weights | {"special:model.yml": np.frombuffer(text.encode(), np.int8)}


def write(directory: Path, keys: dict[str, str]) -> list[str]:
    """Write a model as OPUS-MT publishes it, and return its entries."""
    directory.mkdir()
    tokenizer = train_tokenizer(LINES, vocab_size=300)
    pieces = tokenizer.pieces_of(range(4, tokenizer.vocab_size))
    random.Random(2).shuffle(pieces)
    entries = ["</s>", "<unk>", *pieces]
    lines = [f'"{entry}": {index}' for index, entry in enumerate(entries)]
    lines[5] = f"? {entries[5]}\n: 5"  # the form of YAML for long keys
    (directory / "opus.vocab.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(tokenizer.model)
    np.savez(directory / "model.npz.best.npz", **arrays(len(entries), keys))
    return entries


@pytest.mark.parametrize("norms", [POST, PRE], ids=["post-norm", "pre-norm"])
def test_imported_npz_scores_as_ctranslate2_which_converts_it(
    tmp_path: Path, norms: dict[str, str]
) -> None:
    entries = write(tmp_path / "marian", settings(**norms))
    path, vocabulary = tmp_path / "marian/model.npz.best.npz", tmp_path / "marian/opus.vocab.yml"
    MarianConverter(str(path), [str(vocabulary)] * 2).convert(str(tmp_path / "ct2"))
    spm = (tmp_path / "marian/source.spm").read_bytes()
    foreign = read_npz(path, (vocabulary, vocabulary), (spm, spm))
    assert foreign.source.entries == entries
    # Its converter takes other frequencies than Marian's. All else must be equal.
    theirs = read_ctranslate2(tmp_path / "ct2", (spm, spm))
    ours = build(dataclasses.replace(foreign, positions=theirs.positions)).eval()
    translator = ctranslate2.Translator(str(tmp_path / "ct2"), compute_type="float32")
    chance = random.Random(3)
    source, target = ([chance.choice(entries[2:]) for _ in range(8)] for _ in range(2))
    (scored,) = translator.score_batch([source], [target])
    our_ids = {entry: foreign.source.our_id(index) for index, entry in enumerate(entries)}
    ids = [[*(our_ids[piece] for piece in side), EOS_ID] for side in (source, target)]
    with torch.no_grad():
        logits = ours(torch.tensor([ids[0]]), torch.tensor([ids[1]]))[0]
    logits[:, 0] = -torch.inf
    log_p = logits.log_softmax(-1)[range(len(ids[1])), ids[1]]
    assert torch.allclose(log_p, torch.tensor(scored.log_probs), atol=1e-4)


def test_imported_npz_is_an_ordinary_model(tmp_path: Path) -> None:
    write(tmp_path / "marian", settings(**POST))
    import_model(tmp_path / "marian", tmp_path / "ours", languages=("en", "de"))
    model = transept.load(tmp_path / "ours")
    assert model.score("the old man reads", "a book").log_probability < 0
    assert model.model.config.positions == "learned"


def test_sinusoids_have_the_frequencies_of_marian() -> None:
    table = sinusoids(12, 8)
    for position in range(12):
        for index in range(4):
            angle = position * 10_000 ** (-index / 3)
            assert table[position, index].item() == pytest.approx(np.sin(angle), abs=1e-6)
            assert table[position, index + 4].item() == pytest.approx(np.cos(angle), abs=1e-6)


def test_vocabulary_is_read_as_ctranslate2_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "vocab.yml"
    path.write_text(
        '</s>: 0\n<unk>: 1\n",": 2\n"\\"": 3\n\'a\'\'b\': 4\n▁x:y: 5\n? long\n: 6\n"\\x85": 7\n',
        encoding="utf-8",
    )
    assert read_vocabulary(path) == ["</s>", "<unk>", ",", '"', "a'b", "▁x:y", "long", "\x85"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "s2s"),
        ("transformer-decoder-autoreg", "rnn"),
        ("transformer-no-projection", "true"),
        ("transformer-postprocess", "dn"),
        ("transformer-postprocess-emb", "nd"),
        ("transformer-ffn-activation", "gelu"),
    ],
)
def test_setting_that_transept_does_not_have_is_named(tmp_path: Path, key: str, value: str) -> None:
    write(tmp_path / "marian", settings(**POST) | {key: value})
    with pytest.raises(ConfigError, match=key):
        import_model(tmp_path / "marian", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
