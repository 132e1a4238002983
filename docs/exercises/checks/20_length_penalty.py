"""Check of exercise 20."""

import math
from unittest.mock import patch

from comparing import must
from outputs import Outputs

from transept.decoding import step
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig

LOG_P = {"n.": -1.0, "nein.": -1.15, "neinneinnein.": -2.0, "ja.": -1.91}
WANTED = "nein."


def check(student):
    """The values of the penalty first, then its effect on the package's search."""
    for length, alpha in ((1, 0.6), (7, 0.0), (2, 0.6), (13, 0.6), (20, 1.0)):
        found, expected = student.length_penalty(length, alpha), step.length_penalty(length, alpha)
        must(isinstance(found, int | float), f"the penalty is {found!r}, not a number")
        must(
            math.isclose(found, expected, rel_tol=1e-6),
            f"the penalty of {length} tokens with α = {alpha} is {expected:.4f}, not {found:.4f}",
        )
    config = SearchConfig(length_penalty=student.ALPHA)
    model = Outputs({output: math.exp(log_p) for output, log_p in LOG_P.items()})
    with patch("transept.decoding.beam.length_penalty", student.length_penalty):
        ((best,),) = search(model, [20], config, model.eos_id)
    output = model.text(best.ids) + "."
    scores = ", ".join(
        f"{text} {log_p / student.length_penalty(len(text), student.ALPHA):.3f}"
        for text, log_p in LOG_P.items()
    )
    must(
        output == WANTED,
        f"with α = {student.ALPHA} the search finds {output!r}, not {WANTED!r}. Scores: {scores}",
    )
