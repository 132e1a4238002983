"""Parameters of every preset at a vocabulary of 37,000, with the paper's column beside them.

The paper's counts (in millions) come from a vocabulary that it does not state exactly. Rows that
keep d_model agree with it in their difference from base, within its rounding. Rows that change
d_model (C-d256, C-d1024, big) do not agree under any single vocabulary.
"""

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.model.config import PRESETS

OURS_AND_THE_PAPERS: dict[str, tuple[int, int | None]] = {
    "base": (63_045_632, 65),
    "big": (214_171_648, 213),
    "A-h1": (63_045_632, None),
    "A-h4": (63_045_632, None),
    "A-h16": (63_045_632, None),
    "A-h32": (63_045_632, None),
    "B-dk16": (55_967_744, 58),
    "B-dk32": (58_327_040, 60),
    "C-N2": (33_644_544, 36),
    "C-N4": (48_345_088, 50),
    "C-N8": (77_746_176, 80),
    "C-d256": (26_816_512, 28),
    "C-d1024": (163_815_424, 168),
    "C-ff1024": (50_450_432, 53),
    "C-ff4096": (88_236_032, 90),
    "D-drop0": (63_045_632, None),
    "D-drop2": (63_045_632, None),
    "D-ls0": (63_045_632, None),
    "D-ls2": (63_045_632, None),
    "E-learned": (64_094_208, None),
    "parsing": (121_839_616, None),
    "tiny": (5_658_624, None),
}
OTHER_WIDTH = {"big", "C-d256", "C-d1024"}


def test_every_preset_is_pinned() -> None:
    assert OURS_AND_THE_PAPERS.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", OURS_AND_THE_PAPERS)
def test_parameter_count(name: str) -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig.preset(name, vocab_size=37_000))
    ours, paper = OURS_AND_THE_PAPERS[name]
    assert model.n_parameters() == ours
    if paper is not None and name not in OTHER_WIDTH:
        base, base_paper = OURS_AND_THE_PAPERS["base"]
        assert base_paper is not None
        # Both of the paper's numbers are rounded to a million.
        assert (ours - base) / 1e6 == pytest.approx(paper - base_paper, abs=1.0)


def test_base_by_hand() -> None:
    d, ff, v = 512, 2048, 37_000
    attention, norm = 4 * d * d, 2 * d
    ffn = 2 * d * ff + ff + d
    encoder_layer = attention + ffn + 2 * norm
    decoder_layer = 2 * attention + ffn + 3 * norm
    assert v * d + 6 * (encoder_layer + decoder_layer) == OURS_AND_THE_PAPERS["base"][0]
