import inspect
import itertools
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from transept import ModelConfig, Transformer
from transept.errors import DataError, VocabularyError
from transept.model.attention import record_attention
from transept.model.layers import Dropout, Embedding, PostNorm, PreNorm

VOCABULARY = 23


def make(seed: int = 0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    small = {"n_layers": 2, "d_model": 16, "d_ff": 32, "n_heads": 2}
    return Transformer(ModelConfig(vocab_size=VOCABULARY, **small | changes)).eval()


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(4, VOCABULARY, shape)


def test_logits_have_one_row_per_target_token() -> None:
    assert make()(ids(3, 5), ids(3, 7)).shape == (3, 7, VOCABULARY)


def test_post_norm_normalizes_sum_and_pre_norm_normalizes_input() -> None:
    x, twice = torch.randn(4, 8), lambda x: 2 * x
    post, pre = PostNorm(8, 0.0), PreNorm(8, 0.0)
    torch.testing.assert_close(post(x, twice), F.layer_norm(3 * x, (8,)))
    torch.testing.assert_close(pre(x, twice), x + 2 * F.layer_norm(x, (8,)))


def test_only_pre_norm_has_final_norm() -> None:
    assert not [n for n, _ in make(norm="post").named_parameters() if "coder.norm" in n]
    assert len([n for n, _ in make(norm="pre").named_parameters() if "coder.norm" in n]) == 4


def test_dropout_applies_to_sublayer_outputs_and_embedding_sum() -> None:
    model = make(dropout=0.25).train()
    dropouts = {n for n, m in model.named_modules() if isinstance(m, Dropout) and m.p == 0.25}
    residuals = {
        f"{stack}.layers.{i}.residuals.{j}.dropout"
        for stack, n in [("encoder", 2), ("decoder", 3)]
        for i in range(2)
        for j in range(n)
    }
    assert dropouts == residuals | {"dropout"}


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_applies_only_in_training(name: str) -> None:
    changes: dict[str, Any] = {"dropout": 0.0} | {name: 0.5}
    model = make(**changes)
    source, target = ids(2, 6), ids(2, 6)
    assert torch.equal(model(source, target), model(source, target))
    model.train()
    assert not torch.equal(model(source, target), model(source, target))


def test_embedding_is_scaled_and_padding_is_zero() -> None:
    embedding = Embedding(5, 16, pad_id=0)
    torch.nn.init.ones_(embedding.weight)
    assert embedding(torch.tensor([3])).tolist() == [[4.0] * 16]
    assert embedding(torch.tensor([0])).tolist() == [[0.0] * 16]


@pytest.mark.parametrize("tied", ["three-way", "two-way", "none"])
def test_gradients_of_embeddings_are_dense_and_those_of_matrices_of_zeros(tied: str) -> None:
    model = make(tied_embeddings=tied, dropout=0.0)
    assert model.target_embedding.is_softmax_matrix == (tied != "none")
    source, target = ids(2, 5), ids(2, 6)
    gradients = []
    for is_softmax_matrix in (model.target_embedding.is_softmax_matrix, False):
        model.target_embedding.is_softmax_matrix = is_softmax_matrix
        model.zero_grad()
        model(source, target).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for fast, plain in zip(*gradients, strict=True):
        assert fast is not None
        assert fast.layout == torch.strided
        torch.testing.assert_close(fast, plain)


@pytest.mark.parametrize(("tied", "n_matrices"), [("three-way", 1), ("two-way", 2), ("none", 3)])
def test_tied_embeddings_share_parameters(tied: str, n_matrices: int) -> None:
    model = make(tied_embeddings=tied)
    matrices = {
        id(weight)
        for weight in (
            model.source_embedding.weight,
            model.target_embedding.weight,
            model.projection.weight,
        )
    }
    assert len(matrices) == n_matrices
    assert model.n_parameters() - make().n_parameters() == (n_matrices - 1) * VOCABULARY * 16


def test_source_and_target_vocabulary_may_differ_in_size() -> None:
    model = make(tied_embeddings="two-way", source_vocab_size=50)
    assert model(torch.full((1, 3), 49), ids(1, 4)).shape == (1, 4, VOCABULARY)
    with pytest.raises(VocabularyError, match="source id 50 is outside the vocabulary of 50"):
        model(torch.full((1, 3), 50), ids(1, 4))


def test_attention_and_output_biases_are_off_by_default() -> None:
    plain = {n for n, _ in make().named_parameters() if n.endswith("bias")}
    assert all("feed_forward" in n or "norm" in n for n in plain)
    biased = {n for n, _ in make(attention_bias=True, output_bias=True).named_parameters()}
    assert "projection.bias" in biased
    assert "decoder.layers.1.source_attention.w_qkv.bias" in biased


def test_decoder_starts_with_zero_vector_or_learned_token() -> None:
    zero, token = make(decoder_start="zero"), make(decoder_start="token")
    assert (zero.start_id, token.start_id) == (0, 3)
    source, target = ids(1, 4), ids(1, 4)
    for model, depends in [(zero, False), (token, True)]:
        before = model(source, target)
        with torch.no_grad():
            model.target_embedding.weight[3] += 1.0
        # The start token's own logit changes in any case: its row is a row of the projection.
        changed = (model(source, target) - before).abs().amax(dim=(0, 1)) > 1e-6
        assert changed[4:].any().item() is depends


@pytest.mark.parametrize("variant", ["relu", "swish"])
def test_feed_forward_network_matches_equation_2(variant: str) -> None:
    ffn: Any = make(activation=variant).encoder.layers[0].feed_forward
    x = torch.randn(3, 16)
    inner = x @ ffn.w_1.weight.T + ffn.w_1.bias
    inner = inner.clamp(min=0) if variant == "relu" else inner * inner.sigmoid()
    torch.testing.assert_close(ffn(x), inner @ ffn.w_2.weight.T + ffn.w_2.bias)


def test_every_combination_of_variants_trains_every_weight() -> None:
    for norm, positions, tied, bias in itertools.product(
        ["post", "pre"], ["sinusoidal", "learned"], ["three-way", "two-way", "none"], [False, True]
    ):
        model = make(
            norm=norm, positions=positions, tied_embeddings=tied, attention_bias=bias,
            output_bias=bias, d_k=5, d_v=3, activation="swish", decoder_start="token",
            encoder_window=3, decoder_window=2, max_positions=9,
        ).train()  # fmt: skip
        model(ids(2, 5), ids(2, 6)).square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            # A constant added to every score of a query does not change its softmax.
            assert parameter.grad.any(), name


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("tied", ["three-way", "none"])
def test_initial_logits_have_standard_deviation_near_1(norm: str, tied: str) -> None:
    torch.manual_seed(0)
    config = ModelConfig.preset("tiny", vocab_size=500, norm=norm, tied_embeddings=tied)
    logits = Transformer(config).eval()(
        torch.randint(4, 500, (8, 20)), torch.randint(4, 500, (8, 20))
    )
    assert 0.7 < logits.std() < 1.3
    loss = F.cross_entropy(logits.flatten(0, 1), torch.randint(4, 500, (160,)))
    assert loss < torch.tensor(500.0).log() + 1.0


def test_initial_weights_match_documentation() -> None:
    model = make(d_model=64, n_heads=4, d_k=8, d_v=32, attention_bias=True)
    attention: Any = model.encoder.layers[0].self_attention
    for matrix, width in zip(attention.split(attention.w_qkv.weight.T), (32, 32, 128), strict=True):
        bound = (6 / (64 + width)) ** 0.5
        assert 0.95 * bound < matrix.abs().max() <= bound
    assert model.target_embedding.weight[0].abs().max() == 0
    assert model.target_embedding.weight[1:].std().item() == pytest.approx(64**-0.5, rel=0.1)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name


def test_initial_gain_scales_only_matrices() -> None:
    usual = dict(make().named_parameters())
    for name, parameter in make(initial_gain=0.5).named_parameters():
        is_matrix = "w_" in name and name.endswith("weight")
        torch.testing.assert_close(parameter, usual[name] * (0.5 if is_matrix else 1.0))


def test_record_attention_records_weights_only_inside_context() -> None:
    model = make()
    source, target = ids(2, 5), ids(2, 3)
    plain = model(source, target)
    with record_attention(model) as weights:
        probed = model(source, target)
    assert torch.equal(plain, probed)
    assert weights.keys() == {
        f"{name}.{layer}.{kind}_attention"
        for layer in (0, 1)
        for name, kind in [
            ("encoder.layers", "self"),
            ("decoder.layers", "self"),
            ("decoder.layers", "source"),
        ]
    }
    cross = weights["decoder.layers.0.source_attention"]
    assert cross.shape == (2, 2, 3, 5)
    torch.testing.assert_close(cross.sum(-1), torch.ones(2, 2, 3))
    causal = weights["decoder.layers.1.self_attention"]
    assert not causal.triu(1).any()
    weights.clear()
    model(source, target)
    assert not weights


def test_invalid_input_is_rejected() -> None:
    model = make(positions="learned", max_positions=6)
    good = ids(2, 3)
    empty = torch.tensor([[5, 1, 0], [0, 0, 0]])
    with pytest.raises(DataError, match="source sentence 1 of the batch is empty: remove it"):
        model(empty, good)
    with pytest.raises(DataError, match="target sentence 1 of the batch is empty"):
        model(good, empty)
    with pytest.raises(DataError, match="contains no tokens"):
        model(torch.empty(2, 0, dtype=torch.long), good)
    with pytest.raises(DataError, match=r"sentence 0 .* has padding \(id 0\) before a token"):
        model(torch.tensor([[5, 0, 6]]), ids(1, 3))
    with pytest.raises(VocabularyError, match="target id 23 is outside the vocabulary of 23"):
        model(good, torch.full((2, 3), VOCABULARY))
    with pytest.raises(VocabularyError, match="source id -1"):
        model(torch.full((2, 3), -1), good)
    with pytest.raises(DataError, match="7 tokens is longer than the 6 learned positions"):
        model(ids(2, 7), good)


def test_source_and_target_of_different_batch_size_are_rejected() -> None:
    # Without the shape check of the tests, which would raise first.
    forward = inspect.unwrap(Transformer.forward)
    with pytest.raises(DataError, match="2 source rows and 3 target rows"):
        forward(make(), ids(2, 3), ids(3, 3))


@pytest.mark.parametrize("tied", ["three-way", "two-way", "none"])
def test_uninitialised_network_loads_state_dict(tied: str) -> None:
    model = make(tied_embeddings=tied)
    other = Transformer.uninitialised(model.config).eval()
    other.load_state_dict(model.state_dict())
    assert other.n_parameters() == model.n_parameters()
    source, target = ids(2, 5), ids(2, 6)
    assert torch.equal(other(source, target), model(source, target))
