"""What users may rely on. A change here is a change for them: say so in the changelog."""

import pytest

import transept

PUBLIC = [
    "Glossary",
    "ModelConfig",
    "Parse",
    "Parser",
    "SamplingConfig",
    "Transducer",
    "TranseptError",
    "Transformer",
    "Translation",
    "load",
    "load_parser",
]


def test_the_public_names_are_these() -> None:
    assert sorted(transept.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(transept))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_is_documented(name: str) -> None:
    assert getattr(transept, name).__doc__


def test_another_name_does_not_resolve() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Tranformer'"):
        transept.Tranformer  # noqa: B018
