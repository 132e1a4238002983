"""Spoiled and malicious models are rejected: nothing is run, and nothing is written."""

import gzip
import json
import os
import pickle
import random
import re
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.integration.hostile import (
    IMPORTED,
    MODELS,
    SIZE,
    UNSAFE,
    WIDTH,
    Attack,
    ForbiddenError,
    Guard,
    Sandbox,
    make_models,
)
from tests.integration.spoils import (
    ARGOS,
    BIN,
    NPZ,
    PICKLED,
    TENSORS,
    Malicious,
    Spoil,
    aliases,
    arrays,
    compressed,
    content,
    cut,
    damaged,
    declared,
    encrypted,
    expanded,
    flipped,
    header,
    keys,
    malicious,
    member,
    members,
    named_tensors,
    npy,
    other_model,
    repacked,
    saved,
    scales,
    settings,
    tensors,
    text,
    variables,
    without,
)

CONFIG, VOCABULARY, SHARED, YML = "config.json", "vocab.json", "shared_vocabulary.json", "vocab.yml"
FACTS, MODEL = "en_de/metadata.json", "en_de/sentencepiece.model"
HUGE, NESTED, RANDOM = 2**70, b"[" * 200_000, random.Random(1).randbytes(500)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "models"
    make_models(folder)
    return folder


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    yield sandbox
    assert sandbox.close() == 0


@pytest.fixture
def attack(models: Path, sandbox: Sandbox, tmp_path: Path) -> Attack:
    return Attack(models, sandbox, tmp_path)


Cases = dict[str, tuple[str, Spoil, str]]
"""By name: the format, how the model is spoiled, and words of the message."""


def each(kind: str, words: str, /, **spoils: Spoil) -> Cases:
    return {f"{kind}-{words}-{name}": (kind, spoil, words) for name, spoil in spoils.items()}


def cuts(kind: str, name: str) -> Cases:
    places = (0, 4, 8, 200, 0.5, -30, -1)
    return each(kind, name, **{f"cut-{at}": cut(name, at) for at in places})


# --- the cases -------------------------------------------------------------------------------

CODE: Cases = {
    f"{kind}-{how}": (kind, malicious(how), PICKLED if kind == "pickled" else NPZ)
    for kind, how in (("pickled", "zip"), ("pickled", "legacy"), ("pickled", "plain"),
                      ("pickled", "tar"), ("npz", "array"), ("npz", "member"))
}  # fmt: skip

OUTSIDE = "../x", "en_de/../../x", "/tmp/x", "..\\x", "C:\\x", "C:/x", "c:x", "a\\b", "x\0y"
ARCHIVES: Cases = {
    **each("argos", "leads outside", **{repr(name): member(name, b"x") for name in OUTSIDE}),
    **each(
        "argos", "link or a device",
        link=member("en_de/x", b"/etc/passwd", stat.S_IFLNK | 0o777),
        link_to_folder=member("en_de/model", b"../..", stat.S_IFLNK | 0o777),
        device=member("en_de/x", mode=stat.S_IFCHR),
        pipe=member("en_de/x", mode=stat.S_IFIFO),
    ),
    **each("argos", "twice", same=member(FACTS, b"{}"), case=member(FACTS.upper(), b"{}")),
    **each("argos", "would unpack to", zeros=compressed(ARGOS), size=declared(2**32 - 16)),
    **each("argos", "method", lzma=member("x", b"x", method=14), bz2=member("x", method=12)),
    **each(
        "argos", ARGOS,
        members=members(10_001),
        smaller=declared(3),
        encrypted=encrypted,
        damaged=damaged,
        file_and_folder=member(f"{FACTS}/x"),
        long_name=member("x" * 5000),
        deep=member("x/" * 3000),
        not_a_zip=content(ARGOS, b"hello" * 100),
        gzip=content(ARGOS, gzip.compress(bytes(1000))),
        empty_zip=content(ARGOS, b"PK\x05\x06" + bytes(18)),
        no_metadata=repacked({FACTS: None}),
        metadata_is_not_json=repacked({FACTS: b"{"}),
        metadata_is_a_list=repacked({FACTS: b"[]"}),
        metadata_is_nested=repacked({FACTS: NESTED}),
        metadata_is_not_text=repacked({FACTS: b'{"from_code": ["en"]}'}),
        metadata_is_a_control=repacked({FACTS: rb'{"license": "\u001b[2J"}'}),
        target_prefix=repacked({FACTS: b'{"target_prefix": "__de__"}'}),
        no_tokenizer=repacked({MODEL: None}),
        empty_tokenizer=repacked({MODEL: b""}),
        no_weights=repacked({"en_de/model/model.bin": None}),
        no_vocabulary=repacked({"en_de/model/shared_vocabulary.json": None}),
    ),
    **cuts("argos", ARGOS),
}  # fmt: skip

SAFETENSORS: Cases = {
    **cuts("marian", TENSORS),
    **each(
        "marian", TENSORS,
        random=content(TENSORS, RANDOM),
        pickle=content(TENSORS, pickle.dumps({"x": 1})),
        long_header=content(TENSORS, lambda old: struct.pack("<Q", 2**63) + old[8:]),
        nested_header=content(TENSORS, struct.pack("<Q", len(NESTED)) + NESTED),
        overlap=header(data_offsets=[0, SIZE * WIDTH * 4]),
        outside=header(data_offsets=[2**40, 2**40 + SIZE * WIDTH * 4]),
        backwards=header(data_offsets=[SIZE * WIDTH * 4, 0]),
        negative=header(data_offsets=[-4, 4]),
        unknown_type=header(dtype="F99"),
        other_type=header(dtype="F64"),
        integers=header(dtype="I32"),
        shape=header(shape=[SIZE, WIDTH + 1]),
        wrapping_shape=header(shape=[2**63, 2**63, SIZE, WIDTH]),
        negative_shape=header(shape=[-SIZE, -WIDTH]),
        no_layer=tensors({"model.decoder.layers.0.fc1.weight": None}),
    ),
}  # fmt: skip

big = torch.ones(1000)
PICKLES: Cases = {
    **cuts("pickled", PICKLED),
    **cuts("legacy", PICKLED),
    **each(
        "pickled", PICKLED,
        expanded=expanded,
        compressed=compressed(PICKLED),
        shared=saved({str(number): big for number in range(1000)}),
        list=saved([big]),
        number=saved({"x": 1}),
        sparse=saved({"model.shared.weight": big.to_sparse()}),
        meta=saved({"model.shared.weight": big.to("meta")}),
        integers=saved({"model.shared.weight": torch.ones(SIZE, WIDTH, dtype=torch.int64)}),
        complex=saved({"model.shared.weight": torch.ones(SIZE, WIDTH, dtype=torch.cfloat)}),
        missing=saved({"other": big}),
        module=saved(torch.nn.Linear(2, 2), legacy=True),
        random=content(PICKLED, RANDOM),
        nested=content(PICKLED, b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
        text=content(PICKLED, b"import os\n"),
    ),
}  # fmt: skip

MARIAN: Cases = {
    **cuts("npz", NPZ),
    **each(
        "npz", NPZ,
        not_a_zip=content(NPZ, b"hello"),
        zeros=compressed(NPZ),
        twice=member("Wemb.npy", b"", archive=NPZ),
        not_an_array=member("x.npy", b"hello", archive=NPZ),
        huge=npy(str({"descr": "<f4", "fortran_order": False, "shape": (2**40,)})),
        negative=npy(str({"descr": "<f4", "fortran_order": False, "shape": (-1,)})),
        wrapping=npy(str({"descr": "<f4", "fortran_order": False, "shape": (2**32, 2**32)})),
        object=npy(str({"descr": "|O", "fortran_order": False, "shape": (1,)})),
        call=npy("{'descr': __import__('os').system('touch x'), 'shape': (1,)}"),
        nested=npy("(" * 9000),
        unclosed=npy("{'descr': '<f4L"),
        integers=arrays({"Wemb": np.ones((SIZE, WIDTH), np.int32)}),
        strings=arrays({"Wemb": np.full((SIZE, WIDTH), "x")}),
        no_embedding=arrays({"Wemb": None}),
        no_settings=arrays({"special:model.yml": None}),
    ),
    **each("npz", "type", kind=settings("type: transformer", "type: amun"),
           spaces=settings("type: transformer", f"type: transformer{' ' * 300_000}x")),
    **each("npz", "postprocess", order=settings("dan", "nda")),
    **each("npz", "activation", gelu=settings("relu", "gelu")),
    **each("npz", "n_heads", heads=settings("heads: 2", "heads: 3")),
    **{
        f"npz-{key}-{value[:9]}": ("npz", settings(f"{key}: {old}", f"{key}: {value}"), words)
        for key, old, words in (("enc-depth", 1, NPZ), ("dec-depth", 1, NPZ), ("heads", 2, "heads"))
        for value in ("x", "-1", "0", "1.5", "99999", "9" * 5000, "")
    },
    **each(
        "npz", YML,
        duplicate_id=text(YML, ": 7\n", ": 8\n"),
        repeated_id=text(YML, ": 7\n", ": 7\nx: 7\n"),
        missing_id=text(YML, f": {SIZE - 1}\n", f": {SIZE}\n"),
        extra=content(YML, lambda old: old + f"x: {SIZE}\n".encode()),
        fewer=content(YML, lambda old: b"\n".join(old.split(b"\n")[:-2])),
        duplicate=text(YML, '"<0x07>"', '"<0x08>"'),
        word=text(YML, ": 7\n", ": seven\n"),
        fraction=text(YML, ": 7\n", ": 7.0\n"),
        negative=text(YML, ": 7\n", ": -7\n"),
        long=text(YML, ": 7\n", f": {'7' * 5000}\n"),
        other_digits=text(YML, ": 7\n", ": ٧\n"),
        no_unk=text(YML, '"<unk>"', "unk"),
        no_eos=text(YML, '"</s>"', "eos"),
        surrogate=text(YML, '"<0x07>"', '"\\ud800"'),
        not_utf8=content(YML, b"\xff: 0\n"),
        empty=content(YML, b""),
    ),
    **each("npz", "vocab", none=without(YML)),
}  # fmt: skip

EMBEDDING, FFN = "decoder/embeddings/weight", "encoder/layer_0/ffn/linear_0/weight"
N_BYTES = SIZE * WIDTH * 4

CTRANSLATE2: Cases = {
    **each(
        "ctranslate2", BIN,
        rank=variables({"x": ([1] * 255, 0, bytes(4))}),
        dimensions=variables({"x": ([2**32 - 1] * 3, 0, b"")}),
        wrapping=variables({"x": ([2**31, 2**31, 4], 0, b"")}),
        empty=variables({EMBEDDING: ([0, 2**32 - 1], 0, b"")}),
        unknown_type=variables({EMBEDDING: ([SIZE, WIDTH], 9, bytes(N_BYTES))}),
        integers=variables({EMBEDDING: ([SIZE, WIDTH], 3, bytes(N_BYTES))}),
        no_scale=variables({EMBEDDING: ([SIZE, WIDTH], 1, bytes(N_BYTES // 4))}),
        scales=scales(EMBEDDING),
        no_embedding=variables({EMBEDDING: None}),
        no_layer=variables({FFN: None}),
        many=content(BIN, lambda old: old[:26] + b"\xff" * 4 + old[30:]),
        long_name=content(BIN, lambda old: old[:30] + b"\xff\xff" + old[32:]),
        control=variables({"\x1b[2J": ([], 1, b"\0")}),
        unknown_alias=aliases(1, "unknown"),
        aliases=aliases(2000, EMBEDDING),
        many_aliases=variables({}, struct.pack("<I", 2**32 - 1)),
        more=content(BIN, lambda old: old + b"\0"),
        spec=text(BIN, "TransformerSpec", "TransformerXpec"),
        random=content(BIN, RANDOM),
        gap=variables({"encoder/layer_2/ffn/linear_0/weight": ([1, 1], 0, bytes(4))}),
        alibi=variables({"decoder/alibi": ([], 1, b"\1")}),
        heads_are_many=variables({"encoder/num_heads": ([2], 2, bytes(4))}),
        heads_are_nan=variables({"encoder/num_heads": ([], 0, struct.pack("<f", np.nan))}),
        heads_are_infinite=variables({"encoder/num_heads": ([], 0, struct.pack("<f", np.inf))}),
        **{f"version_{n}": content(BIN, lambda old, n=n: struct.pack("<I", n) + old[4:])  # type: ignore[misc]
           for n in (0, 1, 2, 3, 7, 2**32 - 1)},
    ),
    **each("ctranslate2", "n_heads", **{
        f"heads_{n}": variables({"encoder/num_heads": ([], 2, struct.pack("<h", n))})
        for n in (-1, 0, 3, 32767)
    }),
    **each("ctranslate2", "activation",
           unknown=variables({"encoder/activation": ([], 1, b"\x77")})),
    **each(
        "ctranslate2", SHARED,
        not_json=content(SHARED, b"["),
        nested=content(SHARED, NESTED),
        object=content(SHARED, b"{}"),
        empty=content(SHARED, b"[]"),
        numbers=content(SHARED, lambda old: json.dumps([*range(SIZE)]).encode()),
        duplicate=text(SHARED, '"<0x07>"', '"<0x08>"'),
        surrogate=text(SHARED, '"<0x07>"', '"\\ud800"'),
        no_eos=text(SHARED, '"</s>"', '"eos"'),
        no_unk=text(SHARED, '"<unk>"', '"unk"'),
        extra=content(SHARED, lambda old: json.dumps([*json.loads(old), "x"]).encode()),
        fewer=content(SHARED, lambda old: json.dumps(json.loads(old)[:-1]).encode()),
        none=without(SHARED),
    ),
    **each("ctranslate2", CONFIG, cut=cut(CONFIG, 0.5), list=content(CONFIG, b"[]"),
           nested=content(CONFIG, NESTED)),
    **each("ctranslate2", "eos and unk", same=keys(CONFIG, eos_token="<unk>")),
}  # fmt: skip

HUGGING_FACE: Cases = {
    **each(
        "marian", VOCABULARY,
        shifted=text(VOCABULARY, f": {SIZE - 1}\n", f": {SIZE}\n"),
        duplicate=text(VOCABULARY, ": 7,", ": 8,"),
        surrogate=text(VOCABULARY, '"<0x07>"', '"\\ud800"'),
        extra=keys(VOCABULARY, new=SIZE),
        fewer=content(VOCABULARY, lambda old: old[: old.rindex(b",")] + b"}"),
        no_unk=text(VOCABULARY, '"<unk>"', '"unk"'),
        empty=content(VOCABULARY, b"{}"),
        list=content(VOCABULARY, b"[]"),
        nested=content(VOCABULARY, NESTED),
        cut=cut(VOCABULARY, 0.5),
        none=without(VOCABULARY),
        **{f"id_{value}": text(VOCABULARY, ": 7,", f": {value},")
           for value in ('"7"', "7.0", "7.5", "-7", "null", "[7]", "1e99", "9" * 5000, "NaN")},
        true=text(VOCABULARY, ": 1,", ": true,"),
    ),
    **each("marian", CONFIG, none=without(CONFIG), list=content(CONFIG, b"[]"),
           nested=content(CONFIG, NESTED), cut=cut(CONFIG, 0.5), empty=content(CONFIG, b"")),
    **each("marian", "n_heads",
           heads=keys(CONFIG, encoder_attention_heads=3, decoder_attention_heads=3)),
    **each("marian", "eos and unk", same_unk=keys(CONFIG, eos_token_id=2),
           same_pad=keys(CONFIG, eos_token_id=0)),
    **each("marian", "bad_words_ids", **{
        f"bad_words_{number}": keys("generation_config.json", bad_words_ids=value)
        for number, value in enumerate(
            ("12", 5, {"a": 1}, [1], [[1, 2]], [[]], [["1"]], [[-1]], [[SIZE]], [[HUGE]], [[1.5]],
             [[True]], [None], "x" * 9))
    }),
}  # fmt: skip

MODEL_FILES = (("marian", "source.spm"), ("npz", "source.spm"), ("ctranslate2", "source.model"))
CHANGED: dict[str, bytes | Callable[[bytes], bytes]] = {
    "empty": b"", "random": RANDOM, "zeros": bytes(500), "text": b"hello",
    "half": lambda old: old[: len(old) // 2], "one_less": lambda old: old[:-1],
    "not_utf8": lambda old: old.replace("▁".encode(), b"\xff\xff\xff"),
}  # fmt: skip
SENTENCEPIECE: Cases = {
    f"{kind}-{name}-{how}": (kind, content(name, change), name)
    for kind, name in MODEL_FILES
    for how, change in CHANGED.items()
}

CASES = {**CODE, **ARCHIVES, **SAFETENSORS, **PICKLES, **MARIAN, **CTRANSLATE2, **HUGGING_FACE,
         **SENTENCEPIECE}  # fmt: skip


# --- the tests -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_model_is_valid_before_it_is_spoiled(attack: Attack, kind: str) -> None:
    assert attack(kind, lambda _: None) == IMPORTED


def test_sandbox_notices_a_pickle_that_runs_code(sandbox: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / f"evil{UNSAFE}"
    path.write_bytes(pickle.dumps(Malicious(tmp_path)))
    answer = sandbox(path, tmp_path / "output")
    assert "pickle.find_class" in answer["forbidden"][0]
    assert [*tmp_path.iterdir()] == [path]


def test_guard_forbids_code_and_writing_elsewhere(tmp_path: Path) -> None:
    guard, inside, outside = Guard(), str(tmp_path / "output/x"), str(tmp_path / "x")
    guard.writable = (tmp_path / "output",)
    guard("open", (inside, "w", os.O_WRONLY))
    guard("open", (outside, "r", os.O_RDONLY))
    for event, *args in (
        ("os.system", "x"), ("subprocess.Popen", "x"), ("socket.connect", "x"),
        ("exec", compile("1", outside, "eval")), ("import", "x", f"{outside}.so"),
        ("open", outside, "w", os.O_WRONLY), ("open", f"{inside}/../../x", "a", os.O_APPEND),
        ("os.mkdir", outside, 0o777, -1), ("os.rename", inside, outside, -1, -1),
    ):  # fmt: skip
        with pytest.raises(ForbiddenError):
            guard(str(event), tuple(args))


@pytest.mark.parametrize("case", CASES)
def test_spoiled_model_is_rejected_and_nothing_is_run_or_written(attack: Attack, case: str) -> None:
    assert attack(*CASES[case]) != IMPORTED


CHANGES: dict[str, Any] = {
    "shorter": lambda one: one[:-1],
    "wider": lambda one: np.concatenate([one, one], -1),
    "of_another_rank": lambda one: one[..., None, None].repeat(2, -1),
    "missing": None,
}
OPTIONAL = ("bias", "_b", "num_heads", "activation", "pre_norm", "projection/weight", "encodings")
"""Parts of names of tensors without which there is another valid model."""
LAYER = re.compile(r"(model.)?(en|de)coder(/layer_|.layers.|_l)\d")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["marian", "npz", "ctranslate2"])
@pytest.mark.parametrize("how", CHANGES)
def test_tensor_of_another_shape_is_rejected(attack: Attack, kind: str, how: str) -> None:
    change = CHANGES[how]
    for name, shape, spoil in named_tensors(attack.models, kind, change):
        is_optional = how == "missing" and any(one in name for one in OPTIONAL)
        is_table = how == "shorter" and "encodings" in name  # then sentences must be shorter
        if shape and not is_optional and not is_table:
            layer = LAYER.match(name)
            assert attack(kind, spoil, layer[0] if layer else "") != IMPORTED, name


WRONG: list[Any] = ["x", 1.5, -1, HUGE, None, [1], {"a": 1}, "7", ..., 10**9]
KEYS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim",
         "encoder_attention_heads", "decoder_attention_heads", "eos_token_id", "pad_token_id",
         "decoder_start_token_id", "scale_embedding", "share_encoder_decoder_embeddings",
         "activation_function", "model_type", "is_encoder_decoder", "bad_words_ids"),
        ("marian", CONFIG)),
    **dict.fromkeys(("bos_token", "eos_token", "unk_token", "decoder_start_token",
                     "add_source_bos", "add_source_eos"), ("ctranslate2", CONFIG)),
}  # fmt: skip
VALID = {
    "pad_token_id": (None, ...), "scale_embedding": (...,), "is_encoder_decoder": (...,),
    "share_encoder_decoder_embeddings": (...,), "bad_words_ids": WRONG,  # of the other file
    "bos_token": ("x", "7", ...), "eos_token": (...,), "unk_token": (...,),
    "decoder_start_token": ("x", "7", ...), "add_source_bos": (...,), "add_source_eos": (...,),
}  # fmt: skip
"""Values that are valid, or never read."""


@pytest.mark.parametrize("key", KEYS)
def test_setting_of_another_kind_is_rejected(attack: Attack, key: str) -> None:
    kind, name = KEYS[key]
    for value in WRONG:
        outcome = attack(kind, keys(name, **{key: value}))
        assert (outcome == IMPORTED) == (value in VALID.get(key, ())), value


def test_model_bin_that_ends_early_is_rejected(attack: Attack) -> None:
    for size in range(0, (attack.models / "ctranslate2" / BIN).stat().st_size, 97):
        assert attack("ctranslate2", cut(BIN, size), BIN) != IMPORTED


FLIPS: dict[str, dict[str, tuple[int, int | None]]] = {
    "ctranslate2": {BIN: (150, None), SHARED: (20, None), CONFIG: (20, None)},
    "marian": {TENSORS: (40, 4000), VOCABULARY: (20, None), "target.spm": (20, None)},
    "pickled": {PICKLED: (40, None)},
    "legacy": {PICKLED: (40, 3000)},
    "npz": {NPZ: (60, None), YML: (20, None)},
    "argos": {ARGOS: (60, None)},
}
"""For each file, the number of copies to damage, and how many bytes at its start."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", FLIPS)
def test_damaged_model_is_imported_or_rejected(attack: Attack, kind: str) -> None:
    for name, (count, last) in FLIPS[kind].items():
        for seed in range(count):
            attack(kind, flipped(name, seed, last))


HARMLESS: dict[str, tuple[str, Spoil]] = {
    "nan": ("marian", tensors({"model.shared.weight": lambda one: one * np.nan})),
    "code_beside": ("marian", malicious("beside")),
    "other_sentencepiece": ("marian", lambda at: content("source.spm", other_model())(at)),
    "zip_in_zip": ("argos", member("en_de/x.zip", gzip.compress(bytes(30 << 20)))),
    "pickle_beside": ("argos", member("en_de/stanza/x.pt", pickle.dumps(Malicious(Path("/tmp"))))),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_model_is_imported(attack: Attack, case: str) -> None:
    assert attack(*HARMLESS[case]) == IMPORTED


def test_path_of_no_model_is_rejected(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    for name in ("file.txt", "folder", "missing", "missing.npz", "x" * 300, "x\0y"):
        answer = sandbox(tmp_path / name, tmp_path / "output")
        assert answer["error"] == "CheckpointError", answer
        assert name in answer["message"]
        assert not answer["forbidden"]
