"""Export a model to the format of another toolkit, and verify the result."""

import json
import shutil
import zipfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from transept.api.models import load
from transept.api.transducer import Transducer
from transept.apps.convert.runners import CTranslate2Runner, marian_runner
from transept.apps.convert.verification import EXACT, ROUNDED, Runner, Verification, verify
from transept.checkpoint import (
    atomic_directory,
    load_weights,
    tokenizers_in,
    weights_of,
)
from transept.engines.onnx.network import write_onnx
from transept.engines.onnx.runner import OnnxRunner
from transept.errors import CheckpointError, ConfigError, Problem
from transept.formats import ctranslate2_writer, huggingface_writer
from transept.formats.ctranslate2_reader import read_ctranslate2
from transept.formats.ctranslate2_writer import Names, Quantization
from transept.formats.foreign import build
from transept.model.transformer import Transformer
from transept.quantization import pack, unpack
from transept.runtime.storage import replacing
from transept.shelf import find_model
from transept.text.languages import is_code, name_of
from transept.text.tokenizer import EOS_ID, Tokenizer

ARGOS_VERSION = "1.9.0"
"""The oldest version of Argos Translate that runs the packages."""


@dataclass(frozen=True, slots=True)
class Exportable:
    """A model to export: one network with its vocabularies."""

    directory: Path
    transducer: Transducer

    @classmethod
    def load(cls, name: Path | str | None) -> "Exportable":
        """Load a model by name, as `transept.load` does."""
        directory = find_model(name)
        return cls(directory, load(directory, device="cpu", engine="native"))

    @property
    def network(self) -> Transformer:
        """The network."""
        return self.transducer.model

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The source and the target vocabulary."""
        return self.transducer.source_tokenizer, self.transducer.target_tokenizer

    def require_plain_text(self, toolkit: str) -> None:
        """Reject vocabularies that are not a sentencepiece model with an end symbol."""
        source, target = self.tokenizers
        if not source.model or not target.model:
            raise ConfigError(f"{self.directory}: has no sentencepiece model; {toolkit} needs one")
        if source.framed([]) != [EOS_ID]:
            raise ConfigError(
                f"{self.directory}: its source sentences do not end with one end symbol, and those "
                f"of {toolkit} do"
            )

    def compare(
        self, runner: Runner, network: Transformer | None = None, tolerance: float = EXACT
    ) -> Verification:
        """Compare an exported model with this one, or with the network that was stored."""
        return verify(network or self.network, self.tokenizers[0], runner, tolerance)


def export_ctranslate2(
    model: Exportable, output: Path, quantization: Quantization = "float32"
) -> Verification:
    """Export for CTranslate2, together with the vocabularies."""
    with _new(output) as part:
        verification = _write_ctranslate2(model, part, quantization)
        for folder, path in tokenizers_in(model.directory).items():
            shutil.copytree(path, part / folder)
    return verification


def _write_ctranslate2(
    model: Exportable, directory: Path, quantization: Quantization
) -> Verification:
    names = Names.of(*model.tokenizers)
    ends = model.tokenizers[0].framed([]) == [EOS_ID]
    ctranslate2_writer.save(
        model.network, names, directory, quantization=quantization, add_source_eos=ends
    )
    runner = CTranslate2Runner(directory, names, add_source_eos=ends)
    if quantization == "float32":
        return model.compare(runner)
    # Other types round the weights. CTranslate2 must compute what the rounded weights say.
    network = build(read_ctranslate2(directory, (b"", b"")))
    return model.compare(runner, network, ROUNDED)


def export_marian(model: Exportable, output: Path) -> Verification:
    """Export as a MarianMT directory of Hugging Face transformers."""
    model.require_plain_text("MarianMT")
    with _new(output) as part:
        huggingface_writer.write_marian(model.network, *model.tokenizers, part)
        return model.compare(marian_runner(part))


def export_onnx(model: Exportable, output: Path, int8: bool = False) -> Verification:
    """Export as ONNX files, with the names that Hugging Face Optimum uses."""
    model.require_plain_text("ONNX's tokenizer")
    with _new(output) as part:
        write_onnx(model.network, part, int8=int8)
        huggingface_writer.write_settings(model.network.config, *model.tokenizers, part)
        network = _rounded(model.network) if int8 else model.network
        return model.compare(OnnxRunner(part), network, ROUNDED if int8 else EXACT)


def _rounded(model: Transformer) -> Transformer:
    """The network with its weights rounded to int8."""
    origin = Path("weights")
    rounded = Transformer.uninitialised(model.config)
    load_weights(rounded, unpack(pack(weights_of(model), "int8"), "int8", origin), origin)
    return rounded


def export_argos(
    model: Exportable,
    output: Path,
    languages: tuple[str, str],
    quantization: Quantization = "float32",
) -> Verification:
    """Export as a package of Argos Translate, which LibreTranslate serves.

    Args:
        model: The model.
        output: The file, which ends in `.argosmodel`.
        languages: The codes of the source and target language.
        quantization: How CTranslate2 stores the weights.
    """
    model.require_plain_text("Argos Translate")
    source, target = model.tokenizers
    if source.sha256 != target.sha256:
        raise ConfigError(
            f"{model.directory}: has two vocabularies, and an Argos package has one; train with a "
            "shared vocabulary"
        )
    for key, code in zip(("source_language", "target_language"), languages, strict=True):
        if not is_code(code):
            what = f"is {code!r}; give a code such as en" if code else "is not known; give its code"
            raise ConfigError([Problem(key, what)])
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another file")
    facts = {
        "package_version": "1.0",
        "argos_version": ARGOS_VERSION,
        **dict(zip(("from_code", "to_code"), languages, strict=True)),
        **dict(zip(("from_name", "to_name"), map(name_of, languages), strict=True)),
    }
    name = f"translate-{'_'.join(languages)}-1_0"
    with TemporaryDirectory() as folder:
        package = Path(folder) / name
        (package / "model").mkdir(parents=True)
        verification = _write_ctranslate2(model, package / "model", quantization)
        (package / "sentencepiece.model").write_bytes(source.model)
        (package / "metadata.json").write_text(json.dumps(facts, indent=2), encoding="utf-8")
        _zip(package, output)
    return verification


def _zip(directory: Path, output: Path) -> None:
    with replacing(output) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            archive.write(path, path.relative_to(directory.parent))


def _new(output: Path) -> AbstractContextManager[Path]:
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another directory")
    return atomic_directory(output)
