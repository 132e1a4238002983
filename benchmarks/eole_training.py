"""A training baseline: the toolkit Eole, which is derived from OpenNMT-py.

These two packages are enough where `.[dev]` is installed. With `--no-deps`, pip keeps torch:

    pip install --no-deps eole pyonmttok

The network has the size of ours. Eole's decoder has its layer normalizations before the
sub-layers, so both stacks have them there, which is Eole's default. With `norm = "pre"`, our
network computes the same and has the same number of parameters.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from workload import SMOOTHING

from transept import ModelConfig
from transept.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID

with warnings.catch_warnings(action="ignore"):  # Eole warns that CUDA kernels are missing
    from eole.config.run import TrainConfig
    from eole.inputters.inputter import dict_to_vocabs
    from eole.models.model import get_model_class
    from eole.trainer import build_trainer
    from eole.utils.optimizers import Optimizer

SPECIALS = {
    "pad_token": (PAD_ID, "<blank>"),
    "eos_token": (EOS_ID, "</s>"),
    "unk_token": (UNK_ID, "<unk>"),
    "bos_token": (BOS_ID, "<s>"),
}
"""Ids and Eole's names of the special tokens."""


class EoleTrainer:
    """Eole's trainer on a CPU. It gets padded batches of token ids.

    With `paper_dropout`, dropout is where the paper has it, otherwise also where Eole has it by
    default: on the attention weights and after the ReLU.
    """

    def __init__(
        self, config: ModelConfig, paper_dropout: bool = True, compiled: bool = False
    ) -> None:
        settings = _settings(config, paper_dropout)
        vocabularies = _vocabularies(config.vocab_size)
        build = get_model_class(settings.model).for_training
        self.model: nn.Module = build(settings.model, vocabularies, settings.training, device_id=-1)
        if paper_dropout:
            for layer in self.model.modules():
                if hasattr(layer, "dropout_1"):
                    layer.dropout_1.p = 0.0
        trained = torch.compile(self.model, dynamic=True) if compiled else self.model
        adam = Optimizer.from_config(trained, settings)
        self._trainer = build_trainer(settings, -1, trained, vocabularies, adam)

    def step(self, sources: Tensor, targets: Tensor) -> float:
        """Train with one batch, and return the loss per target token."""
        n = len(sources)
        batch = {
            "src": sources,
            "srclen": (sources != PAD_ID).sum(1),
            "tgt": F.pad(targets, (1, 0), value=BOS_ID),
            "images": None,
            "prefix_len": None,
            "cid": ["corpus"] * n,
            "cid_line_number": range(n),
        }
        loss: float = self._trainer.train([(batch, 0)], train_steps=0).xent()
        return loss


def _settings(config: ModelConfig, paper_dropout: bool) -> Any:
    """Eole's configuration, without files. All other settings are its defaults."""
    model = {
        "architecture": "transformer",
        "layers": config.n_layers,
        "hidden_size": config.d_model,
        "transformer_ff": config.d_ff,
        "heads": config.n_heads,
        "mlp_activation_fn": "relu",
        "add_ffnbias": True,
        "generator_bias": False,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "embeddings": {
            "word_vec_size": config.d_model,
            "position_encoding_type": "SinusoidalInterleaved",
        },
    }
    training = {
        "optim": "adam",
        "learning_rate": 1e-4,
        "adam_beta2": 0.98,
        "adam_eps": 1e-9,
        "max_grad_norm": 0,
        "dropout": [config.dropout],
        **({"attention_dropout": [0.0]} if paper_dropout else {}),
        "label_smoothing": SMOOTHING,
        "normalization": "tokens",
        "param_init_method": "xavier_uniform",
        "log_attention_entropy": False,  # only a statistic, and slow
    }
    return TrainConfig(data={}, src_vocab="", share_vocab=True, model=model, training=training)


def _vocabularies(size: int) -> Any:
    """One vocabulary for both sides, with our ids of the special tokens."""
    special = dict(SPECIALS.values())
    tokens = [special.get(token, str(token)) for token in range(size)]
    names = {kind: name for kind, (_, name) in SPECIALS.items()}
    return dict_to_vocabs({"src": tokens, "tgt": tokens, "specials": names})
