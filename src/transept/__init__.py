"""The Transformer of *Attention Is All You Need* (Vaswani et al., 2017).

Public names are imported on first use, so `import transept` does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transept.version import __version__ as __version__

if TYPE_CHECKING:
    from transept.api.models import load as load
    from transept.api.models import load_parser as load_parser
    from transept.api.parser import Parser as Parser
    from transept.api.parses import Parse as Parse
    from transept.api.texts import Translation as Translation
    from transept.api.transducer import Transducer as Transducer
    from transept.decoding.config import SamplingConfig as SamplingConfig
    from transept.errors import TranseptError as TranseptError
    from transept.model.config import ModelConfig as ModelConfig
    from transept.model.transformer import Transformer as Transformer
    from transept.text.glossary import Glossary as Glossary

_PUBLIC = {
    "Glossary": "transept.text.glossary",
    "Parse": "transept.api.parses",
    "Parser": "transept.api.parser",
    "SamplingConfig": "transept.decoding.config",
    "Transducer": "transept.api.transducer",
    "Translation": "transept.api.texts",
    "load": "transept.api.models",
    "load_parser": "transept.api.models",
    "ModelConfig": "transept.model.config",
    "Transformer": "transept.model.transformer",
    "TranseptError": "transept.errors",
}

__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'transept' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
