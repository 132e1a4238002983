"""The bundled models keep addresses, placeholders and text without letters, whatever they learned.

The cases are some of `benchmarks/robustness`. Only checks that do not depend on the quality of a
model are applied.
"""

import importlib
from pathlib import Path
from typing import Any

import pytest

import transept

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
BY_CONSTRUCTION = ("keeps", "equals", "characters", "lines", "empty")
CHOSEN = {
    "url": ("middle", "end_full_stop", "alone"),
    "email": ("middle", "two"),
    "handle": ("start", "several"),
    "hashtag": ("middle", "only"),
    "emoji": ("end_several", "zwj", "flag"),
    "placeholder": ("two", "positional", "named_percent", "alone"),
    "code": ("middle",),
    "path": ("unix", "windows"),
    "version": ("start",),
    "letterless": ("dots", "number", "between_lines"),
}


@pytest.fixture(scope="module")
def cases() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("robustness.cases")


# The models have not learned to copy, so most sentences are searched twice, with a constraint.
@pytest.mark.slow
@pytest.mark.parametrize("direction", ["en-de", "de-en", "en-fr", "fr-en"])
def test_bundled_model_keeps_what_is_not_language(cases: Any, direction: str) -> None:
    wanted = {f"{group}.{direction}.{key}" for group, keys in CHOSEN.items() for key in keys}
    chosen = [case for case in cases.load() if case.id in wanted]
    assert len(chosen) == len(wanted)
    model = transept.load(direction, device="cpu")
    outputs = model.translate([case.source for case in chosen], beam_size=1)
    failed = {
        case.id: output.text
        for case, output in zip(chosen, outputs, strict=True)
        for name, passed in cases.checked(case, output.text).items()
        if name in BY_CONSTRUCTION and not passed
    }
    assert not failed
