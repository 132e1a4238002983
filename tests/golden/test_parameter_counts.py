"""Parameters of every preset with a vocabulary of 37,000, and the paper's numbers.

The paper's counts (in millions) come from a vocabulary that it does not state exactly. Rows that
keep d_model agree with it in their difference from base, within its rounding. Rows that change
d_model (C-d256, C-d1024, big) do not agree under any single vocabulary.
"""

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.model.config import PAPER_PARAMETERS, PRESETS

OURS: dict[str, int] = {
    "base": 63_045_632,
    "big": 214_171_648,
    "A-h1": 63_045_632,
    "A-h4": 63_045_632,
    "A-h16": 63_045_632,
    "A-h32": 63_045_632,
    "B-dk16": 55_967_744,
    "B-dk32": 58_327_040,
    "C-N2": 33_644_544,
    "C-N4": 48_345_088,
    "C-N8": 77_746_176,
    "C-d256": 26_816_512,
    "C-d1024": 163_815_424,
    "C-ff1024": 50_450_432,
    "C-ff4096": 88_236_032,
    "D-drop0": 63_045_632,
    "D-drop2": 63_045_632,
    "D-ls0": 63_045_632,
    "D-ls2": 63_045_632,
    "E-learned": 64_094_208,
    "parsing": 121_839_616,
    "tiny": 5_658_624,
}
OTHER_WIDTH = {"big", "C-d256", "C-d1024"}
NOT_COUNTED = {"E-learned"}
"""The paper leaves this row blank, although learned positions add parameters."""


def test_every_preset_has_parameter_count() -> None:
    assert OURS.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", OURS)
def test_parameter_count_matches_table(name: str) -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig.preset(name, vocab_size=37_000))
    ours = OURS[name]
    assert model.n_parameters() == ours
    if name in PAPER_PARAMETERS and name not in OTHER_WIDTH | NOT_COUNTED:
        # Both numbers of the paper are rounded to millions.
        paper = PAPER_PARAMETERS[name] - PAPER_PARAMETERS["base"]
        assert (ours - OURS["base"]) / 1e6 == pytest.approx(paper, abs=1.0)


def test_paper_parameters_match_table_3() -> None:
    """Rows that are blank in the paper have the parameters of base."""
    counted = {name: n for name, n in PAPER_PARAMETERS.items() if n != 65 or name == "base"}
    assert counted == {
        "base": 65, "B-dk16": 58, "B-dk32": 60, "C-N2": 36, "C-N4": 50, "C-N8": 80,
        "C-d256": 28, "C-d1024": 168, "C-ff1024": 53, "C-ff4096": 90, "big": 213,
    }  # fmt: skip
    assert PRESETS.keys() - PAPER_PARAMETERS.keys() == {"parsing", "tiny"}


def test_base_parameter_count_matches_manual_count() -> None:
    d, ff, v = 512, 2048, 37_000
    attention, norm = 4 * d * d, 2 * d
    ffn = 2 * d * ff + ff + d
    encoder_layer = attention + ffn + 2 * norm
    decoder_layer = 2 * attention + ffn + 3 * norm
    assert v * d + 6 * (encoder_layer + decoder_layer) == OURS["base"]
