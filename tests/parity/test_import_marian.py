"""MarianMT directories of transformers, imported and exported, against transformers itself."""

import itertools
import json
import random
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest
import sentencepiece
import torch

import transept
from transept.api.config import Options
from transept.api.transducer import Transducer
from transept.apps.convert.importing import import_model
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis
from transept.errors import ConfigError
from transept.formats.foreign import build
from transept.formats.huggingface_reader import read_marian
from transept.formats.huggingface_writer import write_marian
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID, PAD_ID
from transept.text.training import train_tokenizer

transformers = import_module("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")

WORDS = (
    "the old man reads a book in house tree and dog cat sees große Straße schön où été 日本 жизнь"
)
Shape = dict[str, Any]
SHAPES: list[Shape] = [
    {"encoder_layers": n, "decoder_layers": m, "activation_function": act, "two": two, "bias": bias}
    for (n, m), (act, two, bias) in zip(
        itertools.cycle([(6, 6), (6, 3)]),
        itertools.product(["swish", "relu"], [False, True], [False, True]),
        strict=False,
    )
]


def sentences(n: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS.split(), k=chance.randint(1, 12))) for _ in range(n)]


def sentencepiece_model(directory: Path, name: str, seed: int) -> list[str]:
    """Train one, as OPUS-MT does, and return its pieces in another order."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(2000, seed)), model_prefix=str(directory / name),
        vocab_size=120, minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    (directory / f"{name}.model").rename(directory / f"{name}.spm")
    processor = sentencepiece.SentencePieceProcessor(str(directory / f"{name}.spm"))
    pieces = [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]
    random.Random(seed).shuffle(pieces)
    return pieces


def marian(directory: Path, shape: Shape, d_model: int = 32) -> Any:
    """A MarianMT directory with random weights, as `save_pretrained` writes it."""
    shape = dict(shape)
    two, bias = shape.pop("two"), shape.pop("bias")
    directory.mkdir(parents=True)
    pieces = [
        sentencepiece_model(directory, name, seed) for seed, name in enumerate(("source", "target"))
    ]
    joint = list(dict.fromkeys([">>de<<", ">>fr<<", *pieces[0], *pieces[1]]))
    tables = [["</s>", "<unk>", *each, "<pad>"] for each in (pieces if two else [joint, joint])]
    if two:  # transformers has one id for padding
        size = max(map(len, tables))
        tables = [[*t[:-1], *(f"extra{i}" for i in range(size - len(t))), "<pad>"] for t in tables]
    for name, table in zip(("vocab.json", "target_vocab.json"), tables, strict=True):
        if two or name == "vocab.json":
            ids = {entry: index for index, entry in enumerate(table)}
            (directory / name).write_text(json.dumps(ids, ensure_ascii=False))
    (directory / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": two}))
    size = len(tables[1])
    config = transformers.MarianConfig(
        vocab_size=len(tables[0]), decoder_vocab_size=size, d_model=d_model, encoder_ffn_dim=64,
        decoder_ffn_dim=64, encoder_attention_heads=4, decoder_attention_heads=4,
        max_position_embeddings=128, scale_embedding=True, pad_token_id=size - 1,
        decoder_start_token_id=size - 1, eos_token_id=0, forced_eos_token_id=0,
        share_encoder_decoder_embeddings=not two, **shape,
    )  # fmt: skip
    torch.manual_seed(1)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.3)
        for embedding in {model.get_input_embeddings(), model.model.decoder.embed_tokens}:
            embedding.weight[size - 1] = 0
        if bias:
            model.final_logits_bias.normal_()
        # Without these, outputs repeat one entry and do not end.
        norm = model.model.decoder.layers[-1].final_layer_norm
        end = model.model.decoder.embed_tokens.weight[0]
        norm.weight.normal_()
        norm.bias += 3 * end / (end @ end)
    # As in OPUS-MT's models: padding is never written, and has no probability.
    model.generation_config.bad_words_ids = [[size - 1]]
    model.generation_config.renormalize_logits = True
    model.save_pretrained(directory)
    return model


@pytest.mark.parametrize(
    "shape",  # the first and the last have every value of every setting
    [SHAPES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SHAPES[1:-1]), SHAPES[-1]],
    ids=str,
)
def test_imported_marian_has_the_same_probabilities(tmp_path: Path, shape: Shape) -> None:
    theirs = marian(tmp_path / "marian", shape)
    foreign = read_marian(tmp_path / "marian")
    ours = build(foreign).eval()
    source, target = foreign.source, foreign.target
    chance = random.Random(2)
    sizes = (len(source.entries), len(target.entries))
    rows = [[chance.randrange(2, size - 1) for _ in range(9)] for size in sizes]
    input_ids, labels = torch.tensor([[*rows[0], 0]]), torch.tensor([[*rows[1], 0]])
    start = torch.tensor([[sizes[1] - 1]])
    with torch.no_grad():
        expected = theirs(
            input_ids=input_ids, decoder_input_ids=torch.cat([start, labels[:, :-1]], dim=1)
        ).logits[0]
        logits = ours(
            torch.tensor([[source.our_id(i) for i in input_ids[0].tolist()]]),
            torch.tensor([[target.our_id(i) for i in labels[0].tolist()]]),
        )[0]
    logits[:, PAD_ID] = expected[:, sizes[1] - 1] = -torch.inf
    found = logits.log_softmax(-1)[:, [target.our_id(i) for i in range(sizes[1] - 1)]]
    assert (found - expected.log_softmax(-1)[:, :-1]).abs().max() < 1e-4


def test_imported_tokenizer_gives_the_ids_of_marian_tokenizer(tmp_path: Path) -> None:
    marian(tmp_path / "marian", SHAPES[0])
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path / "marian")
    import_model(tmp_path / "marian", tmp_path / "ours")
    model = transept.load(tmp_path / "ours")
    vocabulary = read_marian(tmp_path / "marian").source
    for text in mixed(3_000):
        ids = [vocabulary.our_id(i) for i in theirs(text).input_ids]
        assert [*model.source_tokenizer.encode(text), EOS_ID] == ids, text


def mixed(n: int) -> list[str]:
    """Lines of words, tags and any characters of Unicode."""
    chance = random.Random(3)
    alphabet = [
        *range(0x20, 0x7F),
        *range(0xA0, 0x250),
        *range(0x370, 0x590),
        *range(0x3040, 0x30FF),
    ]
    alphabet += [*range(0x4E00, 0x4F00), *range(0x1F300, 0x1F650), 0x200B, 0x2581, 0xFEFF, 0x301]
    lines = []
    for line in sentences(n, 4):
        noise = "".join(chr(chance.choice(alphabet)) for _ in range(chance.randint(0, 12)))
        lines.append(f"{chance.choice(['', '>>de<< ', '>>fr<<', '>>xx<< '])}{line} {noise}")
    return [line for line in lines if not any(one in line for one in ("</s>", "<unk>", "<pad>"))]


MAX_LENGTH = 30


def greedy_with_transformers(model: Any, batch: Any) -> list[list[int]]:
    """The ids that `generate` finds, without end symbols and padding."""
    found = model.generate(
        **batch, max_length=None, max_new_tokens=MAX_LENGTH, do_sample=False,
        forced_eos_token_id=None,
    )  # fmt: skip
    special = (model.config.eos_token_id, model.config.pad_token_id)
    return [[index for index in row if index not in special] for row in found.tolist()]


class MarianStep:
    """transformers' network for transept's search: the same stopping rule, another network."""

    def __init__(self, model: Any, batch: Any) -> None:
        self._model, self._mask = model, batch["attention_mask"]
        self._states = model.get_encoder()(**batch).last_hidden_state
        self._written = torch.full((len(self._mask), 1), model.config.decoder_start_token_id)

    def __call__(self, tokens: torch.Tensor | None) -> torch.Tensor:
        if tokens is not None:
            self._written = torch.cat([self._written, tokens[:, None]], dim=1)
        logits = self._model(
            encoder_outputs=(self._states,), attention_mask=self._mask,
            decoder_input_ids=self._written,
        ).logits[:, -1]  # fmt: skip
        logits[:, self._model.config.pad_token_id] = -torch.inf
        log_p: torch.Tensor = logits.log_softmax(-1)
        return log_p

    def select(self, rows: torch.Tensor) -> None:
        self._states, self._mask = self._states[rows], self._mask[rows]
        self._written = self._written[rows]


Find = Callable[[Transducer, list[Input], SearchConfig], list[list[Hypothesis]]]


def native_search(
    model: Transducer, inputs: list[Input], config: SearchConfig
) -> list[list[Hypothesis]]:
    return model.native.search(inputs, config, no_progress)


def fused_search(
    model: Transducer, inputs: list[Input], config: SearchConfig
) -> list[list[Hypothesis]]:
    from transept.engines.fused.engine import FusedSearch

    return FusedSearch(model.model.cuda(), torch.float32, EOS_ID)(inputs, config)


@torch.no_grad()
def same_translations(
    directory: Path, shape: Shape, beam: int, n: int, find: Find = native_search
) -> int:
    """The number of equal translations of an imported model and its original."""
    theirs = marian(directory / "marian", shape, d_model=64)
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory / "marian")
    import_model(directory / "marian", directory / "ours")
    texts = sentences(n, 5)
    tagged = texts if shape["two"] else [f">>de<< {text}" for text in texts]
    batch = tokenizer(tagged, return_tensors="pt", padding=True)
    config = SearchConfig(beam_size=beam, length_penalty=0.0)
    if beam == 1:
        expected = greedy_with_transformers(theirs, batch)
    else:
        found = search(MarianStep(theirs, batch), [MAX_LENGTH] * n, config, eos_id=0)
        expected = [list(best.ids) for best, *_ in found]
    model = transept.load(directory / "ours", engine="native")
    sources = [
        model.source_tokenizer.framed(ids) for ids in model.source_tokenizer.encode_batch(tagged)
    ]
    inputs = [Input(source, MAX_LENGTH) for source in sources]
    ours = [list(best.ids) for best, *_ in find(model, inputs, config)]
    vocabulary = read_marian(directory / "marian").target
    ids = {theirs: ours for ours, theirs in enumerate(vocabulary.order)}
    same = [[ids[index] for index in row] == our for row, our in zip(expected, ours, strict=True)]
    return sum(same)


@pytest.mark.parametrize("beam", [1, 4])
def test_imported_marian_translates_as_transformers(tmp_path: Path, beam: int) -> None:
    assert same_translations(tmp_path, SHAPES[1], beam, 40) == 40


def test_imported_models_form_an_ensemble_and_follow_a_prefix(tmp_path: Path) -> None:
    marian(tmp_path / "marian", SHAPES[0])
    for name in ("one", "other"):
        import_model(tmp_path / "marian", tmp_path / name)
    alone = transept.load(tmp_path / "one")
    both = transept.load(tmp_path / "one", tmp_path / "other")
    how: Options = {"target_language": "fr", "max_length_extra": 8}
    first, second = (model.translate("the old man", **how) for model in (alone, both))
    assert first.text == second.text
    assert first.score == pytest.approx(second.score, abs=1e-4)
    led = alone.translate("the old man", prefix="book tree", target_language="fr")
    assert led.text.startswith("book tree")
    with pytest.raises(ConfigError, match="target_language: is 'it'; this model has de, fr"):
        alone.translate("the old man", target_language="it")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("beam", [1, 4])
def test_imported_marian_translates_as_transformers_on_a_gpu(
    tmp_path: Path, shape: Shape, beam: int
) -> None:
    assert same_translations(tmp_path, shape, beam, 200, fused_search) >= 199


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("beam", [1, 4])
def test_250_translations_of_an_imported_marian_are_those_of_transformers(
    tmp_path: Path, shape: Shape, beam: int
) -> None:
    assert same_translations(tmp_path, shape, beam, 250) >= (250 if beam == 1 else 249)


@pytest.mark.parametrize("ties", ["three-way", "two-way", "none"])
def test_export_to_marian_is_read_by_transformers_and_back(
    tmp_path: Path, ties: Literal["three-way", "two-way", "none"]
) -> None:
    tokenizer = train_tokenizer(sentences(500), vocab_size=400)
    torch.manual_seed(1)
    config = ModelConfig(
        vocab_size=400, n_layers=2, n_decoder_layers=1, d_model=32, d_ff=64, n_heads=4,
        activation="swish", tied_embeddings=ties,
    )  # fmt: skip
    model = Transformer(config).eval()
    write_marian(model, tokenizer, tokenizer, tmp_path)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    named = transformers.MarianTokenizer.from_pretrained(tmp_path)
    source = [*tokenizer.encode("the old man reads"), EOS_ID]
    assert named("the old man reads").input_ids == source
    target = [7, 300, 12, EOS_ID]
    with torch.no_grad():
        ours = model(torch.tensor([source]), torch.tensor([target]))[0]
        logits = theirs(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[0, *target[:-1]]])
        ).logits[0]
    ours[:, PAD_ID] = -torch.inf
    difference = (ours.log_softmax(-1) - logits.log_softmax(-1))[:, 1:]
    assert difference.abs().max() < 1e-4
    again = build(read_marian(tmp_path))
    assert again.config == config
    for (name, one), (_, other) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        first = 1 if "embedding" in name or "projection" in name else 0
        assert torch.equal(one[first:], other[first:]), name  # the row of padding is never read
