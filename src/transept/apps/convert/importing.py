"""Import models of other toolkits: recognize the format, read it, write a model directory.

Only the output directory and temporary files are written. No code that comes with a model is run.
"""

import re
import stat
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from transept.checkpoint import CONFIG, tokenizers_in
from transept.errors import Argument, CheckpointError, ConfigError, TranseptError
from transept.formats.ctranslate2_reader import is_ctranslate2, read_ctranslate2
from transept.formats.files import check_archive, read_json, read_sentencepiece
from transept.formats.foreign import ForeignModel, save
from transept.formats.huggingface_reader import is_marian, read_marian
from transept.formats.marian_reader import read_npz
from transept.text.tokenizer import MODEL_FILE

SENTENCEPIECE = re.compile(r".*\.(spm|model)")
SIDES = ("source", "target")
WHITE_SPACE = Path("none")
"""As a tokenizer: text is split at white space."""
FACTS = ("package_version", "from_code", "to_code", "license")
"""Keys of a package's metadata.json that are kept."""


def import_model(
    path: Path,
    output: Path,
    tokenizers: Sequence[Path] = (),
    languages: tuple[str | None, str | None] = (None, None),
) -> ForeignModel:
    """Import a model into a new directory.

    Args:
        path: A MarianMT directory of Hugging Face, a Marian `.npz` file or its directory, a
            CTranslate2 directory, or an Argos package (`.argosmodel`).
        output: The new directory.
        tokenizers: The sentencepiece models of source and target, or one for both, if the model
            has none beside it. `none`: text is split at white space.
        languages: The source and the target language, if the model does not specify them.
    """
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another directory")
    given = {f"{side}_language": code for side, code in zip(SIDES, languages, strict=True) if code}
    try:
        with TemporaryDirectory() as folder:
            found = _read(path, tokenizers, Path(folder))
            foreign = replace(found, about={**found.about, **given})
            save(foreign, output)
    except TranseptError:
        raise
    except Exception as error:
        # Readers reject the damage that they know. Files can be damaged in more ways than that.
        what = str(error).partition("\n")[0] or type(error).__name__
        raise CheckpointError(f"{path}: its files do not fit together ({what})") from error
    return foreign


def _read(path: Path, tokenizers: Sequence[Path], folder: Path) -> ForeignModel:
    """Read a model of any format. `folder` is for temporary files."""
    if path.suffix == ".npz" and path.is_file():
        return _read_npz(path, tokenizers)
    if path.is_file() and zipfile.is_zipfile(path):
        unpack(path, folder)
        try:
            return _read_argos(folder, path)
        except TranseptError as error:  # the temporary files are gone when it is read
            raise CheckpointError(str(error).replace(f"{folder}/", f"{path}: ")) from error
    if not path.is_dir():
        raise CheckpointError(f"{path}: is not a directory, a .npz file or an .argosmodel file")
    if (path / CONFIG).is_file():
        raise CheckpointError(f"{path}: is already a model of transept; use it as it is")
    if is_marian(path):
        return read_marian(path)
    if is_ctranslate2(path):
        return read_ctranslate2(path, _sentencepiece(path, tokenizers))
    if files := sorted(path.glob("*.npz")):
        best = [one for one in files if "best" in one.name] or files
        return _read_npz(best[0], tokenizers)
    raise CheckpointError(
        f"{path}: none of the known formats: Hugging Face MarianMT (config.json and "
        "model.safetensors), Marian (*.npz), CTranslate2 (model.bin), Argos (*.argosmodel)"
    )


def _read_npz(path: Path, tokenizers: Sequence[Path]) -> ForeignModel:
    directory = path.parent
    found = sorted(one for one in directory.glob("*vocab*") if one.suffix in (".yml", ".yaml"))
    if len(found) not in (1, 2):
        raise CheckpointError(
            f"{directory}: needs one or two vocabularies (*vocab*.yml) beside {path.name}, and has "
            f"{len(found)}"
        )
    source = next((one for one in found if "src" in one.name), found[0])
    target = next((one for one in found if "trg" in one.name), found[-1])
    return read_npz(path, (source, target), _sentencepiece(directory, tokenizers))


def _sentencepiece(directory: Path, given: Sequence[Path]) -> tuple[bytes, bytes]:
    """The sentencepiece models of source and target. Empty: text is split at white space."""
    if len(given) > len(SIDES):
        raise ConfigError("at most two tokenizers can be given, for source and target")
    if given:
        models = [b"" if one == WHITE_SPACE else read_sentencepiece(one) for one in given]
        return models[0], models[-1]
    # `transept export --to ctranslate2` stores the vocabularies in separate directories.
    own = [folder / MODEL_FILE for folder in tokenizers_in(directory).values()]
    files = own or sorted(one for one in directory.iterdir() if SENTENCEPIECE.fullmatch(one.name))
    if not files:
        raise CheckpointError(
            f"{directory}: has no sentencepiece model (*.spm or *.model); set ",
            Argument("tokenizer"),
            " to it, or to none if the text is already split into entries",
        )
    source, target = (
        read_sentencepiece(next((one for one in files if one.name.startswith(side)), files[place]))
        for side, place in zip(SIDES, (0, -1), strict=True)
    )
    return source, target


# --- Argos -----------------------------------------------------------------------------------


def _read_argos(folder: Path, path: Path) -> ForeignModel:
    """Read an unpacked package: a directory with `metadata.json` and `model`."""
    package = next((one.parent for one in folder.glob("*/metadata.json")), folder)
    facts = read_json(package / "metadata.json")
    tokenizer = package / "sentencepiece.model"
    if not tokenizer.is_file():
        what = "has no sentencepiece.model; packages with BPE codes are not supported"
        raise CheckpointError(f"{path}: {what}")
    if facts.get("target_prefix"):
        what = f"target_prefix is {facts['target_prefix']!r}, which is not supported"
        raise CheckpointError(f"{path}: {what}")
    for key in FACTS:
        value = facts.get(key) or ""
        if not isinstance(value, str) or not value.isprintable():
            raise CheckpointError(f"{path}: metadata.json: {key} is {value!r}; it must be a text")
    model = read_sentencepiece(tokenizer)
    found = read_ctranslate2(package / "model", (model, model))
    about: dict[str, Any] = {
        "imported_from": f"{path.name} {facts.get('package_version', '')}".strip(),
        "format": "Argos Translate",
        "source_language": facts.get("from_code"),
        "target_language": facts.get("to_code"),
        "licence": facts.get("license"),
    }
    return replace(found, about={key: value for key, value in about.items() if value})


def unpack(path: Path, folder: Path) -> None:
    """Unpack a zip archive. Paths that lead outside, links and zip bombs are rejected."""
    members = check_archive(path)
    for member in members:
        _check_member(member, path)
    if len({member.filename.casefold() for member in members}) < len(members):
        raise CheckpointError(f"{path}: has a name twice, in capitals and in small letters")
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, zlib.error) as error:
        raise CheckpointError(f"{path}: cannot be unpacked ({error})") from error


def _check_member(member: zipfile.ZipInfo, path: Path) -> None:
    # `orig_filename` is the stored name: zipfile cuts it at a NUL, and changes separators.
    name = member.orig_filename
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or any(sign in name for sign in "\\:\0"):
        raise CheckpointError(f"{path}: {name!r} leads outside the archive, or may on some systems")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise CheckpointError(f"{path}: {name!r} is a link or a device")
