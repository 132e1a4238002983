"""Public names have examples, and examples give what they say."""

import doctest
import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytest
from tests.docs.blocks import Reader

import transept

OPTIONAL = ("transept.__main__", "transept.engines.kernels", "transept.apps.serve")
"""Need Triton, or end the program, or have no examples."""


def modules() -> list[str]:
    found = walk_packages(transept.__path__, "transept.")
    return [m.name for m in found if not m.name.startswith((*OPTIONAL, "transept.cli"))]


@pytest.mark.parametrize("name", transept.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(transept, name)) or ""), f"{name} has no example"


@pytest.mark.parametrize(
    "method",
    [
        *("translate", "translate_file", "stream", "units", "translate_units", "translate_feed"),
        *("score", "attend"),
    ],
)
def test_what_a_model_does_has_an_example(method: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(transept.Transducer, method)) or "")


def test_every_example_gives_what_it_says(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(reader.directory)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    finder, n_run = doctest.DocTestFinder(), 0
    said: list[str] = []
    for name in modules():
        module = import_module(name)
        for example in finder.find(module, extraglobs={"transept": transept}):
            n_run += runner.run(example, out=said.append).attempted
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert n_run > 30
