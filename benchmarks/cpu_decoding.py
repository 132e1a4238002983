"""Decoding speed on a CPU: output tokens per CPU-second, one thread, against other engines.

All engines get the same random weights and the same sources of 30 tokens, and must give 30 tokens
for each: the end symbol is suppressed. They run interleaved in one process, encoder included, and
before anything is timed their outputs are compared.

    python benchmarks/cpu_decoding.py [--quick] [--json FILE]
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import torch
from measuring import Goal, Row, report
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from transept import ModelConfig, Transformer
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.model.attention import MultiHeadAttention
from transept.model.encoding import encode
from transept.model.incremental import IncrementalDecoder
from transept.model.positions import sinusoids

MODELS = {
    "small": ModelConfig(vocab_size=8_000, n_layers=3, d_model=256, d_ff=1024, n_heads=4),
    "base": ModelConfig.preset("base"),
}
LENGTH = 30
PAD, EOS, NO_END = 0, 1, -1
OURS, HF, CT2, INT8 = "transept", "HF MarianMT", "CTranslate2 float32", "CTranslate2 int8"

Ids = list[list[int]]
Decode = Callable[[Ids, int], Ids]
"""The best outputs for some sources with a beam of so many."""


@dataclass(frozen=True)
class Cell:
    """One kind of work: how many sentences at once, with which beam."""

    batch: int
    beam: int

    def __str__(self) -> str:
        search = "greedy" if self.beam == 1 else f"beam {self.beam}"
        return f"{search}, batch {self.batch}"


CELLS = [Cell(batch, beam) for batch in (32, 1) for beam in (1, 4)]


def transept_decoder(model: Transformer) -> Decode:
    def decode(sources: Ids, beam: int) -> Ids:
        with torch.inference_mode():
            step = IncrementalDecoder(model, encode(model, torch.tensor(sources)))
            lengths = [LENGTH] * len(sources)
            found = search(step, lengths, SearchConfig(beam_size=beam), NO_END)
        return [list(best.ids) for best, *_ in found]

    return decode


def marian_decoder(model: Transformer) -> Decode:
    marian = to_marian(model)

    def decode(sources: Ids, beam: int) -> Ids:
        ids = torch.tensor(sources)
        with torch.inference_mode():
            out = marian.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                num_beams=beam,
                do_sample=False,
                max_new_tokens=LENGTH,
            )
        return out[:, 1:].tolist()  # without the start

    return decode


def ctranslate2_decoder(model: Transformer, compute_type: str) -> Decode:
    with tempfile.TemporaryDirectory() as directory:
        save_for_ctranslate2(model, directory)
        translator = ctranslate2.Translator(
            directory, compute_type=compute_type, inter_threads=1, intra_threads=1
        )

    def decode(sources: Ids, beam: int) -> Ids:
        results = translator.translate_batch(
            [list(map(str, source)) for source in sources],
            beam_size=beam,
            min_decoding_length=LENGTH,
            max_decoding_length=LENGTH,
        )
        return [list(map(int, result.hypotheses[0])) for result in results]

    return decode


def to_marian(model: Transformer) -> MarianMTModel:
    """Our weights in MarianMT; the biases that we do not have are zero."""
    config = model.config
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_layers,
            decoder_layers=config.n_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=None,
            decoder_start_token_id=PAD,
            forced_eos_token_id=None,
        )
    ).eval()
    marian.generation_config.eos_token_id = None
    marian.generation_config.forced_eos_token_id = None
    with torch.no_grad():
        for parameter in marian.parameters():
            parameter.zero_()
        marian.model.shared.weight.copy_(model.target_embedding.weight)
        marian.final_logits_bias[0, PAD] = -torch.inf
        for theirs, ours in (
            (marian.model.encoder, model.encoder),
            (marian.model.decoder, model.decoder),
        ):
            n_positions = len(theirs.embed_positions.weight)
            theirs.embed_positions.weight.copy_(positions(n_positions, config.d_model))
            for layer, source in zip(theirs.layers, ours.layers, strict=True):
                fill_marian_layer(layer, source)
    return marian


def fill_marian_layer(theirs: nn.Module, ours: nn.Module) -> None:
    attentions = [(theirs.self_attn, ours.self_attention)]
    norms = [theirs.self_attn_layer_norm]
    if hasattr(ours, "source_attention"):
        attentions.append((theirs.encoder_attn, ours.source_attention))
        norms.append(theirs.encoder_attn_layer_norm)
    for attention, source in attentions:
        for name, part in zip("qkv", source.split(source.w_qkv.weight.T), strict=True):
            attention.get_submodule(f"{name}_proj").weight.copy_(part.T)
        attention.out_proj.weight.copy_(source.w_o.weight)
    theirs.fc1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.fc2.load_state_dict(ours.feed_forward.w_2.state_dict())
    for norm, residual in zip([*norms, theirs.final_layer_norm], ours.residuals, strict=True):
        norm.load_state_dict(residual.norm.state_dict())


def save_for_ctranslate2(model: Transformer, directory: str) -> None:
    """Our weights as a CTranslate2 model; tokens are called by their numbers."""
    config = model.config
    spec = ctranslate2.specs.TransformerSpec.from_config(
        config.n_layers, config.n_heads, pre_norm=False
    )
    spec.decoder.start_from_zero_embedding = True
    embedding = model.target_embedding.weight.detach()
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    spec.decoder.projection.bias = torch.zeros(config.vocab_size)
    spec.decoder.projection.bias[PAD] = -torch.inf
    for theirs, ours in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        theirs.position_encodings.encodings = positions(512, config.d_model)
        for layer, source in zip(theirs.layer, ours.layers, strict=True):
            fill_ctranslate2_layer(layer, source)
    names = [str(token) for token in range(config.vocab_size)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = spec.config.unk_token = names[PAD]
    spec.config.decoder_start_token = names[PAD]
    spec.config.eos_token = names[EOS]
    spec.validate()
    spec.optimize()
    spec.save(directory)


def fill_ctranslate2_layer(theirs: object, ours: nn.Module) -> None:
    norms = [norm.norm for norm in ours.residuals]
    fill_ctranslate2_attention(theirs.self_attention, ours.self_attention, norms[0])
    if hasattr(ours, "source_attention"):
        fill_ctranslate2_attention(theirs.attention, ours.source_attention, norms[1])
    for linear, source in (
        (theirs.ffn.linear_0, ours.feed_forward.w_1),
        (theirs.ffn.linear_1, ours.feed_forward.w_2),
    ):
        linear.weight, linear.bias = source.weight.detach(), source.bias.detach()
    fill_ctranslate2_norm(theirs.ffn.layer_norm, norms[-1])


def fill_ctranslate2_attention(
    theirs: object, ours: MultiHeadAttention, norm: nn.LayerNorm
) -> None:
    """Q, K and V in one matrix there too; in attention to the source, K and V."""
    qkv = ours.w_qkv.weight.detach()
    h_dk = ours.n_heads * ours.d_k
    parts = [qkv] if len(theirs.linear) == 2 else [qkv[:h_dk], qkv[h_dk:]]
    for linear, weight in zip(theirs.linear, [*parts, ours.w_o.weight.detach()], strict=True):
        linear.weight, linear.bias = weight, torch.zeros(len(weight))
    fill_ctranslate2_norm(theirs.layer_norm, norm)


def fill_ctranslate2_norm(theirs: object, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = ours.weight.detach(), ours.bias.detach()


def random_model(name: str) -> Transformer:
    """Initial weights; a random last gain keeps outputs from repeating their first token."""
    torch.manual_seed(0)
    model = Transformer(MODELS[name]).eval()
    nn.init.normal_(model.decoder.layers[-1].residuals[-1].norm.weight)
    return model


def positions(length: int, d_model: int) -> Tensor:
    return sinusoids(torch.arange(length), d_model).float()


def engines(model: Transformer) -> dict[str, Decode]:
    return {
        OURS: transept_decoder(model),
        HF: marian_decoder(model),
        CT2: ctranslate2_decoder(model, "float32"),
        INT8: ctranslate2_decoder(model, "int8"),
    }


def sources(n: int, vocab_size: int) -> Ids:
    ids = torch.randint(4, vocab_size, (n, LENGTH))
    ids[:, -1] = EOS
    return ids.tolist()


def check(decoders: Mapping[str, Decode], batch: Ids, beam: int) -> None:
    """The engines that compute in single precision must say the same, up to near ties."""
    expected = decoders[OURS](batch, beam)
    for name, decode in decoders.items():
        found = decode(batch, beam)
        assert all(len(ids) == LENGTH for ids in found), f"{name} gives other lengths"
        same = sum(a == b for a, b in zip(found, expected, strict=True)) / len(batch)
        if name != INT8 and same < 0.9:
            sys.exit(f"{name} agrees with {OURS} in {same:.0%} of the outputs only (beam {beam})")


def measure(name: str, cell: Cell, decoders: Mapping[str, Decode], rounds: int) -> list[Row]:
    """Medians over the rounds, and of each round's ratios of ours to theirs."""
    rates: dict[str, list[float]] = {system: [] for system in decoders}
    for number in range(rounds + 1):
        batches = [
            sources(cell.batch, MODELS[name].vocab_size) for _ in range(4 if cell.batch == 1 else 1)
        ]
        for system, decode in decoders.items():
            start = time.process_time()
            for batch in batches:
                decode(batch, cell.beam)
            seconds = time.process_time() - start
            if number > 0:  # the first round warms up
                rates[system].append(len(batches) * cell.batch * LENGTH / seconds)
    work = f"{name}, {cell}"
    rows = [Row.of(work, system, values, "output tokens/CPU-s") for system, values in rates.items()]
    ours = rates.pop(OURS)
    for system, theirs in rates.items():
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        rows.append(Row.of(work, f"{OURS} / {system}", ratios, "×"))
    return rows


def goals(rows: list[Row]) -> list[Goal]:
    """At least 1.5 × HF with the small model, and nowhere slower than CTranslate2."""
    targets = {f"{OURS} / {HF}": (1.5, ["small"]), f"{OURS} / {CT2}": (1.0, ["small", "base"])}
    return [
        Goal.at_least(f"{row.work}: {row.system}", row.value, targets[row.system][0])
        for row in rows
        if row.system in targets and row.work.split(",")[0] in targets[row.system][1]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small only, under a minute")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    one_thread()
    rounds = {"small": 3} if arguments.quick else {"small": 9, "base": 3}
    rows = []
    for name, n_rounds in rounds.items():
        decoders = engines(random_model(name))
        for beam in (1, 4):
            check(decoders, sources(8, MODELS[name].vocab_size), beam)
        for cell in CELLS:
            rows += measure(name, cell, decoders, n_rounds)
    packages = ["transept", "torch", "transformers", "ctranslate2"]
    report("cpu_decoding", rows, goals(rows), packages, arguments.json)


def one_thread() -> None:
    """Begin again with one thread for every library.

    `torch.set_num_threads(1)` comes too late for the matrix products of OpenBLAS and oneDNN: some
    of them still run on two cores, and the CPU time of the second is only seen now and then.
    """
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
