"""Dimensions and variants of the network, and every row of Table 3. Does not import torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from transept.config import Checks, did_you_mean
from transept.errors import ConfigError, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The architecture of the network: its dimensions and its variants.

    The defaults are the paper's base model. `d_k` and `d_v` default to d_model / n_heads, as in
    section 3.2.2. A config stores their actual values, so `dataclasses.replace` keeps them: set
    them again when you change `n_heads`.

    Example:
        >>> ModelConfig(vocab_size=37_000, n_heads=16).d_k
        32
    """

    vocab_size: int
    """Size of the vocabulary, or of the target vocabulary if each language has its own. 0: the size
    of the training corpus's vocabulary."""
    source_vocab_size: int | None = None
    """Size of the source vocabulary, if it is separate. 0: the size of the training corpus's source
    vocabulary. None: source and target share one vocabulary."""
    n_layers: int = 6
    """N, the number of encoder layers and, by default, of decoder layers."""
    n_decoder_layers: int | None = None
    """The number of decoder layers. None: N."""
    d_model: int = 512
    """Width of the residual stream: every sub-layer's input and output."""
    d_ff: int = 2048
    """Inner width of the feed-forward networks, equation (2)."""
    n_heads: int = 8
    """h, the number of attention heads."""
    d_k: int = 0
    """Width of a head's queries and keys. 0: d_model / n_heads."""
    d_v: int = 0
    """Width of a head's values. 0: d_model / n_heads."""
    dropout: float = 0.1
    """P_drop on each sub-layer's output and on the sum of embedding and positional encoding."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights. The paper's text has none."""
    activation_dropout: float = 0.0
    """Dropout after the ReLU. The paper's text has none."""
    norm: Literal["post", "pre"] = "post"
    """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) with a final norm."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Positional encoding: the sinusoids of section 3.5, or row (E) of Table 3."""
    max_positions: int = 1024
    """Number of learned positional encodings. Sinusoids have no limit."""
    tied_embeddings: Literal["three-way", "two-way", "none"] = "three-way"
    """Which weights share one embedding matrix: source, target and pre-softmax projection; only
    the last two; or none."""
    activation: Literal["relu", "swish"] = "relu"
    """Non-linearity of the feed-forward networks."""
    attention_bias: bool = False
    """Whether the attention projections have biases. The paper mentions only matrices."""
    output_bias: bool = False
    """Whether the pre-softmax projection has a bias."""
    initial_gain: float = 1.0
    """Gain of the Xavier initialization. With a small gain, sub-layers add little to the residual
    stream at first, and a deep post-norm network converges faster."""
    decoder_start: Literal["zero", "token"] = "zero"
    """The decoder's first input: a zero vector, or the embedding of `bos_id`."""
    encoder_window: int | None = None
    """r of restricted self-attention (section 4) in the encoder. None: unrestricted."""
    decoder_window: int | None = None
    """r of restricted self-attention in the decoder. None: unrestricted."""
    pad_id: int = 0
    """Fills padded batches. Its embedding is always zero, also after training."""
    bos_id: int = 3
    """The learned start token, used if `decoder_start` is "token"."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "n_layers", "d_model", "d_ff", "n_heads", "max_positions")
        if self.n_decoder_layers is not None:
            checks.at_least(1, "n_decoder_layers")
        checks.at_least(0, "vocab_size", "d_k", "d_v", "pad_id", "bos_id")
        checks.fraction("dropout", "attention_dropout", "activation_dropout")
        checks.that(self.initial_gain > 0, "initial_gain", "must be more than 0")
        checks.that(
            self.d_model % 2 == 0,
            "d_model",
            f"must be even: sinusoids come in pairs; try {self.d_model + 1}",
        )
        for window in ("encoder_window", "decoder_window"):
            size = getattr(self, window)
            checks.that(size is None or size >= 1, window, "must be at least 1, or left out")
        if self.n_heads >= 1 and not (self.d_k and self.d_v):
            checks.that(
                self.d_model % self.n_heads == 0,
                "n_heads",
                f"does not divide d_model = {self.d_model}; choose one that does, "
                "or give d_k and d_v",
            )
        self._check_vocabulary(checks)
        checks.done()
        # The class is frozen: default values can only be set this way.
        object.__setattr__(self, "d_k", self.d_k or self.d_model // self.n_heads)
        object.__setattr__(self, "d_v", self.d_v or self.d_model // self.n_heads)

    @property
    def decoder_depth(self) -> int:
        """The number of decoder layers."""
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    @property
    def sized(self) -> bool:
        """Whether both vocabulary sizes are set and need not be taken from a corpus."""
        return self.vocab_size != 0 and self.source_vocab_size != 0

    def with_vocabularies(self, source: int, target: int) -> "ModelConfig":
        """The config with these sizes in place of those that are 0."""
        return replace(
            self,
            vocab_size=self.vocab_size or target,
            source_vocab_size=source if self.source_vocab_size == 0 else self.source_vocab_size,
        )

    def unlike(self, **wanted: Any) -> list[str]:
        """The fields whose values differ, each formatted as in a config file.

        Example:
            >>> ModelConfig.preset("base").unlike(norm="pre", activation="relu")
            ["model.norm = 'post'"]
        """
        return [
            f"model.{name} = {getattr(self, name)!r}"
            for name, value in wanted.items()
            if getattr(self, name) != value
        ]

    def _check_vocabulary(self, checks: Checks) -> None:
        checks.that(
            self.source_vocab_size is None or self.source_vocab_size >= 0,
            "source_vocab_size",
            "must be at least 0, or left out",
        )
        if not self.sized:
            return
        smallest = min(self.vocab_size, self.source_vocab_size or self.vocab_size)
        checks.that(
            self.source_vocab_size in (None, self.vocab_size)
            or self.tied_embeddings != "three-way",
            "source_vocab_size",
            f"differs from vocab_size = {self.vocab_size}, so the embeddings cannot be one "
            "matrix; set tied_embeddings to 'two-way' or 'none'",
        )
        checks.that(self.pad_id < smallest, "pad_id", f"is not an id of a vocabulary of {smallest}")
        if self.decoder_start == "token":
            checks.that(
                self.bos_id < self.vocab_size,
                "bos_id",
                f"is not an id of a vocabulary of {self.vocab_size}",
            )

    @classmethod
    def preset(cls, name: str, *, vocab_size: int = 37_000, **changes: Any) -> "ModelConfig":
        """A named model of the paper (`PRESETS` lists them), with optional changes.

        `d_k` and `d_v` default to d_model / n_heads if neither the row of Table 3 nor a change
        sets them.

        Example:
            >>> ModelConfig.preset("big", vocab_size=32_000).d_model
            1024
            >>> ModelConfig.preset("base", n_heads=16).d_k
            32
        """
        if name not in PRESETS:
            problem = f"unknown preset {name!r}; {did_you_mean(name, PRESETS)}"
            raise ConfigError([Problem("preset", problem)])
        return cls(vocab_size=vocab_size, **{**_ROWS[name], **changes})


# Only the columns in which a row differs from base. In rows without d_k and d_v both are
# d_model / n_heads, as Table 3 prints for rows (A) and (C).
_ROWS: Mapping[str, Mapping[str, Any]] = {
    "base": {},
    "big": {"d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3},
    "A-h1": {"n_heads": 1},
    "A-h4": {"n_heads": 4},
    "A-h16": {"n_heads": 16},
    "A-h32": {"n_heads": 32},
    "B-dk16": {"d_k": 16},
    "B-dk32": {"d_k": 32},
    "C-N2": {"n_layers": 2},
    "C-N4": {"n_layers": 4},
    "C-N8": {"n_layers": 8},
    "C-d256": {"d_model": 256},
    "C-d1024": {"d_model": 1024},
    "C-ff1024": {"d_ff": 1024},
    "C-ff4096": {"d_ff": 4096},
    "D-drop0": {"dropout": 0.0},
    "D-drop2": {"dropout": 0.2},
    "D-ls0": {},  # label smoothing belongs to the loss: see LABEL_SMOOTHING
    "D-ls2": {},
    "E-learned": {"positions": "learned"},
    "parsing": {"n_layers": 4, "d_model": 1024},
    "tiny": {"n_layers": 2, "d_model": 128, "d_ff": 512, "n_heads": 4},
}

PRESETS: Mapping[str, ModelConfig] = MappingProxyType(
    {name: ModelConfig(vocab_size=37_000, **row) for name, row in _ROWS.items()}
)
"""The rows of Table 3, the parser of section 6.3, and a tiny model for tests and demos."""

LABEL_SMOOTHING: Mapping[str, float] = MappingProxyType(
    {name: {"D-ls0": 0.0, "D-ls2": 0.2}.get(name, 0.1) for name in PRESETS}
)
"""ε_ls of each preset. It is a setting of the loss and therefore not part of `ModelConfig`."""

_COUNTED = {
    "big": 213, "B-dk16": 58, "B-dk32": 60, "C-N2": 36, "C-N4": 50, "C-N8": 80, "C-d256": 28,
    "C-d1024": 168, "C-ff1024": 53, "C-ff4096": 90,
}  # fmt: skip
_OF_TABLE_3 = (name for name in PRESETS if name not in ("parsing", "tiny"))
PAPER_PARAMETERS: Mapping[str, int] = MappingProxyType(
    {name: _COUNTED.get(name, 65) for name in _OF_TABLE_3}
)
"""Millions of parameters in each row of Table 3. The column is blank for rows (A), (D) and (E),
which means the same as base: 65."""
