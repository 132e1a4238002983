"""CTranslate2 directories and Argos packages, imported, against CTranslate2 itself."""

import json
import random
import struct
import zipfile
from pathlib import Path
from typing import Any, cast

import ctranslate2
import pytest
import torch
from ctranslate2.specs import TransformerSpec, common_spec

import transept
from transept.api.config import EngineName
from transept.apps.convert.importing import import_model
from transept.errors import CheckpointError
from transept.formats.ctranslate2_reader import _Variables, read_ctranslate2
from transept.formats.foreign import ForeignModel, build
from transept.text.tokenizer import EOS_ID
from transept.text.training import train_tokenizer

WORDS = "the old man reads a book in the house and dog sees cat beside tree".split()  # noqa: SIM905
ENTRIES = ["<blank>", "<s>", "</s>", "<unk>"]


def specification(
    n: int, *, pre_norm: bool, activation: Any, table: bool, d: int = 32, n_heads: int = 4
) -> Any:
    """A network of random weights with its vocabulary sizes, as converters make one."""
    spec = TransformerSpec.from_config(
        (2, 1), n_heads, pre_norm=pre_norm, activation=activation, with_relative_position=False
    )
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int, scale: float = 0.3) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * scale

    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = side.embeddings[0] if name == "encoder" else side.embeddings
        embeddings.weight = draw(n, d)
        if table:
            side.position_encodings.encodings = draw(64, d)
        if pre_norm:
            side.layer_norm.gamma, side.layer_norm.beta = 1 + draw(d), draw(d)
        for layer in side.layer:
            attentions = [layer.self_attention]
            if name == "decoder":
                attentions.append(layer.attention)
            for attention in attentions:
                widths = {2: [3 * d, d], 3: [d, 2 * d, d]}[len(attention.linear)]
                for linear, width in zip(attention.linear, widths, strict=True):
                    linear.weight, linear.bias = draw(width, d), draw(width)
                attention.layer_norm.gamma, attention.layer_norm.beta = 1 + draw(d), draw(d)
            layer.ffn.linear_0.weight, layer.ffn.linear_0.bias = draw(64, d), draw(64)
            layer.ffn.linear_1.weight, layer.ffn.linear_1.bias = draw(d, 64), draw(d)
            layer.ffn.layer_norm.gamma, layer.ffn.layer_norm.beta = 1 + draw(d), draw(d)
    # Without this, outputs repeat one entry.
    spec.decoder.layer[-1].ffn.layer_norm.gamma = draw(d, scale=1.0)
    spec.decoder.projection.weight, spec.decoder.projection.bias = draw(n, d), draw(n)
    return spec


def written(
    directory: Path, entries: list[str], quantization: str | None = None, **how: Any
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    spec = specification(len(entries), **how)
    spec.register_source_vocabulary(entries)
    spec.register_target_vocabulary(entries)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(directory))


FORMS = [
    {"pre_norm": True, "activation": common_spec.Activation.RELU, "table": False},
    {"pre_norm": False, "activation": common_spec.Activation.SWISH, "table": True},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("quantization", [None, "int8", "int16", "float16"])
def test_imported_ctranslate2_scores_as_ctranslate2(
    tmp_path: Path, form: dict[str, Any], quantization: str | None
) -> None:
    entries = [*ENTRIES, *(f"t{i}" for i in range(60))]
    written(tmp_path / "model", entries, quantization, **form)
    theirs = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    foreign = read_ctranslate2(tmp_path / "model", (b"", b""))
    chance = random.Random(1)
    source, target = (["t" + str(chance.randrange(60)) for _ in range(8)] for _ in range(2))
    (scored,) = theirs.score_batch([source], [target])
    found = log_probabilities(foreign, source, target)
    tolerance = 1e-4 if quantization in (None, "float16") else 1e-2
    assert torch.allclose(found, torch.tensor(scored.log_probs), atol=tolerance)


def log_probabilities(foreign: ForeignModel, source: list[str], target: list[str]) -> torch.Tensor:
    """Of each target entry and the end, by the imported network."""
    sides = ((foreign.source, source), (foreign.target, target))
    ids = [[side.our_id(side.entries.index(one)) for one in pieces] for side, pieces in sides]
    ids[1].append(EOS_ID)
    with torch.no_grad():
        logits = build(foreign).eval()(torch.tensor([ids[0]]), torch.tensor([ids[1]]))[0]
    logits[:, 0] = -torch.inf
    log_p: torch.Tensor = logits.log_softmax(-1)[range(len(ids[1])), ids[1]]
    return log_p


def version_1(path: Path) -> bytes:
    """A `model.bin` of version 6 in the layout of version 1, which had TensorFlow's names."""
    variables = _Variables(path)
    names = {
        "embeddings_0/weight": "w_embs:0",
        "embeddings/weight": "w_embs:0",
        "layer_norm": "LayerNorm",
        "linear_0": "conv1d",
        "linear_": "conv1d_",
        "projection": "dense",
        "weight": "kernel",
    }
    parts = []
    for name in variables.names:
        if not name.endswith(("weight", "bias", "beta", "gamma")):
            continue  # settings: version 1 had none
        rank = 2 if name.endswith("weight") else 1
        tensor = variables.tensor(name, *[None] * rank)
        for new, old in names.items():
            name = name.replace(new, old)
        name = name.replace("decoder/layer_0/self_attention", "decoder/layer_0/masked_multi_head")
        name = name.replace("self_attention", "multi_head").replace("/attention", "/multi_head")
        title = f"transformer/{name.removesuffix(':0')}:0".encode() + b"\0"
        shape = struct.pack(f"<B{tensor.ndim}I", tensor.ndim, *tensor.shape)
        data = tensor.numpy().tobytes()
        head = struct.pack("<H", len(title)) + title + shape
        parts.append(head + struct.pack("<BI", 4, len(data) // 4) + data)
    return struct.pack("<II", 1, len(parts)) + b"".join(parts)


def test_version_1_is_read_as_ctranslate2_reads_it(tmp_path: Path) -> None:
    entries = [*ENTRIES, *(f"t{i}" for i in range(60))]
    written(tmp_path, entries, None, n_heads=8, **FORMS[0])
    (tmp_path / "model.bin").write_bytes(version_1(tmp_path / "model.bin"))
    (tmp_path / "config.json").unlink()
    for side in ("source", "target"):  # as then: lines of text, without the unknown entry
        lines = [entry for entry in entries if entry != "<unk>"] + ["t60"]
        (tmp_path / f"{side}_vocabulary.txt").write_text("\n".join(lines[:-1]) + "\n")
    (tmp_path / "shared_vocabulary.json").unlink()
    theirs = ctranslate2.Translator(str(tmp_path), compute_type="float32")
    foreign = read_ctranslate2(tmp_path, (b"", b""))
    assert foreign.source.entries[-1] == "<unk>"
    source, target = ["t1", "t5", "t9"], ["t7", "t3"]
    (scored,) = theirs.score_batch([source], [target])
    assert torch.allclose(
        log_probabilities(foreign, source, target), torch.tensor(scored.log_probs), atol=1e-4
    )


def test_text_that_is_already_split_needs_no_sentencepiece_model(tmp_path: Path) -> None:
    written(tmp_path / "model", [*ENTRIES, *(f"t{i}" for i in range(60))], None, **FORMS[1])
    with pytest.raises(CheckpointError, match="`tokenizer` to it, or to none"):
        import_model(tmp_path / "model", tmp_path / "ours")
    import_model(tmp_path / "model", tmp_path / "ours", [Path("none")])
    tokenizer = transept.load(tmp_path / "ours").source_tokenizer
    ids = tokenizer.encode("t5 t8 t0 other")
    assert tokenizer.pieces_of(ids) == ["t5", "t8", "t0", "<unk>"]
    assert tokenizer.decode(ids) == "t5 t8 t0"


@pytest.mark.parametrize(
    "form", [FORMS[0], pytest.param(FORMS[1], marks=pytest.mark.slow)], ids=str
)
def test_500_translations_of_an_argos_package_are_those_of_its_parts(
    tmp_path: Path, form: dict[str, Any]
) -> None:
    chance = random.Random(2)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(500)]
    tokenizer = train_tokenizer(lines, vocab_size=300)
    package = tmp_path / "translate-en_de-1_0"
    written(package / "model", [*ENTRIES, *tokenizer.pieces_of(range(4, 300))], None, **form)
    (package / "sentencepiece.model").write_bytes(tokenizer.model)
    facts = {"package_version": "1.0", "from_code": "en", "to_code": "de", "license": "CC0"}
    (package / "metadata.json").write_text(json.dumps(facts))
    archive = tmp_path / "en_de.argosmodel"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(package.rglob("*")):
            file.write(path, path.relative_to(tmp_path))
    assert import_model(archive, tmp_path / "ours").about["licence"] == "CC0"
    theirs = ctranslate2.Translator(str(package / "model"), compute_type="float32")
    pieces = [tokenizer.pieces(line) for line in lines]
    for engine, beam in (("native", 1), ("ctranslate2", 4)):  # its own stopping rule
        results = theirs.translate_batch(
            pieces, beam_size=beam, max_decoding_length=20, length_penalty=0
        )
        decoded = [tokenizer.decode_pieces(one.hypotheses[0]).strip() for one in results]
        expected = [text.replace("\N{REPLACEMENT CHARACTER}", "") for text in decoded]
        model = transept.load(tmp_path / "ours", engine=cast(EngineName, engine))
        ours = model.translate(
            lines, beam_size=beam, length_penalty=0.0, max_length_factor=0.0, max_length_extra=20,
            split=False, raw=True,
        )  # fmt: skip
        same = sum(one.text == other for one, other in zip(ours, expected, strict=True))
        assert same >= (500 if beam == 1 else 498)
