"""Ways to spoil a model: functions that change the files of a folder."""

import io
import json
import os
import pickle
import random
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from tests.integration.hostile import MODELS, SIZE, WIDTH, WORDS

Spoil = Callable[[Path], object]
Change = Callable[[Any], Any]
"""The new value for an old one. None in its place removes it."""
BIN, TENSORS, PICKLED = "model.bin", "model.safetensors", "pytorch_model.bin"
NPZ, ARGOS = (Path(MODELS[name]).name for name in ("npz", "argos"))


# --- any file --------------------------------------------------------------------------------


def content(name: str, change: bytes | Callable[[bytes], bytes]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change if isinstance(change, bytes) else change(path.read_bytes()))

    return spoil


def without(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def cut(name: str, at: float) -> Spoil:
    """Truncate a file, at a fraction of it if that is below 1."""
    return content(name, lambda old: old[: int(at * len(old) if 0 < at < 1 else at)])


def flipped(name: str, seed: int, last: int | None = None) -> Spoil:
    """Change one to eight bytes of a file, or of its start."""

    def change(old: bytes) -> bytes:
        chance, new = random.Random(seed), bytearray(old)
        for _ in range(chance.randint(1, 8)):
            new[chance.randrange(last or len(new))] = chance.randrange(256)
        return bytes(new)

    return content(name, change)


def text(name: str, old: str, new: str) -> Spoil:
    def change(content: bytes) -> bytes:
        assert old.encode() in content
        return content.replace(old.encode(), new.encode("utf-8", "surrogatepass"), 1)

    return content(name, change)


def keys(name: str, **values: Any) -> Spoil:
    """Set keys of a JSON object. An Ellipsis removes one."""

    def change(old: bytes) -> bytes:
        table = {**json.loads(old), **values}
        return json.dumps({key: one for key, one in table.items() if one is not ...}).encode()

    return content(name, change)


def other_model(**options: Any) -> bytes:
    """A sentencepiece model with other special ids than those of transept."""
    new = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([WORDS] * 20), model_writer=new, vocab_size=40, minloglevel=2,
        hard_vocab_limit=False, **options,
    )  # fmt: skip
    return new.getvalue()


# --- weights ---------------------------------------------------------------------------------


def _changed(found: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    for name, change in changes.items():
        old = found.pop(name, None)
        if change is not None:
            found[name] = change(old) if callable(change) else change
    return found


def tensors(changes: Mapping[str, Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        found = _changed(load_file(folder / TENSORS), changes)
        save_file({name: one.contiguous() for name, one in found.items()}, folder / TENSORS)

    return spoil


def header(**fields: Any) -> Spoil:
    """Change the entry of the embedding in the header of a safetensors file."""

    def change(old: bytes) -> bytes:
        (size,) = struct.unpack("<Q", old[:8])
        table = json.loads(old[8 : 8 + size])
        table["model.shared.weight"] |= fields
        new = json.dumps(table).encode()
        return struct.pack("<Q", len(new)) + new + old[8 + size :]

    return content(TENSORS, change)


def saved(value: object, legacy: bool = False) -> Spoil:
    def spoil(folder: Path) -> None:
        with (folder / PICKLED).open("wb") as file:
            torch.save(value, file, _use_new_zipfile_serialization=not legacy)

    return spoil


def expanded(folder: Path) -> None:
    """A tensor of terabytes whose numbers are all stored as one."""
    saved({"model.shared.weight": torch.ones(1, dtype=torch.half).expand(2**20, 2**20)})(folder)


def compressed(name: str) -> Callable[[Path], None]:
    """Add 30 MB of zeros to an archive, compressed."""

    def spoil(folder: Path) -> None:
        with zipfile.ZipFile(folder / name, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            file.writestr("archive/data/0" if name == PICKLED else "zeros.npy", bytes(30 << 20))

    return spoil


def arrays(changes: Mapping[str, Any]) -> Spoil:
    def spoil(folder: Path) -> None:
        with np.load(folder / NPZ) as file:
            found = _changed(dict(file), changes)
        np.savez(folder / NPZ, **found)

    return spoil


def settings(old: str, new: str) -> Spoil:
    """Change the settings in a .npz file."""

    def change(array: np.ndarray) -> np.ndarray:
        found = array.tobytes().decode()
        assert old in found
        return np.frombuffer(found.replace(old, new).encode(), np.int8)

    return arrays({"special:model.yml": change})


def npy(description: str) -> Spoil:
    """Add an array with another header to a .npz file."""
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(description)) + description.encode()
    return member("x.npy", start + bytes(64), archive=NPZ)


Variable = tuple[list[int], int, bytes]
"""A shape, the number of a type, and the numbers."""


def variables(changes: Mapping[str, Variable | Change | None], aliases: bytes = b"") -> Spoil:
    """Change variables of a model.bin: a new value, a function of the old one, None to remove."""

    def spoil(folder: Path) -> None:
        start, found, end = parsed((folder / BIN).read_bytes())
        _changed(found, changes)
        new = [start, struct.pack("<I", len(found))]
        for name, (shape, kind, numbers) in found.items():
            new += [struct.pack("<H", len(name) + 1), name.encode(), b"\0"]
            new += [struct.pack(f"<B{len(shape)}I", len(shape), *shape)]
            new += [struct.pack("<BI", kind, len(numbers)), numbers]
        (folder / BIN).write_bytes(b"".join(new) + (aliases or end))

    return spoil


def parsed(content: bytes) -> tuple[bytes, dict[str, Variable], bytes]:
    """The start of a model.bin, its variables, and its end."""
    file = io.BytesIO(content)

    def number(form: str) -> int:
        return int(struct.unpack(f"<{form}", file.read(struct.calcsize(form)))[0])

    start = file.read(4 + 2 + len("TransformerSpec\0") + 4)
    found: dict[str, Variable] = {}
    for _ in range(number("I")):
        name = file.read(number("H"))[:-1].decode()
        shape = [number("I") for _ in range(number("B"))]
        kind = number("B")
        found[name] = shape, kind, file.read(number("I"))
    return start, found, file.read()


def named_tensors(
    models: Path, kind: str, change: Any
) -> Iterator[tuple[str, tuple[int, ...], Spoil]]:
    """Each tensor of a model, with its shape and with the change of it."""
    if kind == "ctranslate2":
        _, found, _ = parsed((models / kind / BIN).read_bytes())
        for name, (shape, _, _) in found.items():
            yield name, tuple(shape), variables({name: change and partial(_variable, change)})
    elif kind == "npz":
        with np.load(models / MODELS[kind]) as file:
            for name in file.files:
                if not name.startswith("special"):
                    yield name, file[name].shape, arrays({name: change})
    else:
        for name, tensor in load_file(models / kind / TENSORS).items():
            new = change and partial(_tensor, change)
            yield name, tuple(tensor.shape), tensors({name: new})


def _variable(change: Any, old: Variable) -> Variable:
    shape, number, data = old
    new = change(np.frombuffer(data, np.float32).reshape(shape))
    return [*new.shape], number, new.tobytes()


def _tensor(change: Any, old: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(change(old.numpy()))


def scales(name: str) -> Spoil:
    """Integers and scales that would be multiplied to a matrix of terabytes."""
    n = 400_000
    return variables({name: ([n], 1, bytes(n)), f"{name}_scale": ([n], 0, bytes(4 * n))})


def aliases(count: int, of: str) -> Spoil:
    """Add other names of a variable."""
    name = struct.pack("<H", len(of) + 1) + of.encode() + b"\0"
    many = (struct.pack("<H", 6) + f"{number:05}\0".encode() + name for number in range(count))
    return variables({}, struct.pack("<I", count) + b"".join(many))


# --- archives --------------------------------------------------------------------------------


def member(
    name: str, value: bytes = b"", mode: int = 0, archive: str = ARGOS, method: int = 0
) -> Spoil:
    """Add a member to an archive."""

    def spoil(folder: Path) -> None:
        info = zipfile.ZipInfo("placeholder")
        info.filename, info.external_attr, info.compress_type = name, mode << 16, method
        with zipfile.ZipFile(folder / archive, "a") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about duplicate names
            file.writestr(info, value)

    return spoil


def members(count: int) -> Spoil:
    def spoil(folder: Path) -> None:
        with zipfile.ZipFile(folder / ARGOS, "a") as file:
            for number in range(count):
                file.writestr(str(number), b"")

    return spoil


def declared(size: int) -> Spoil:
    """Declare another size of the last member, in the directory at the end of an archive."""

    def change(old: bytes) -> bytes:
        at = old.rindex(b"PK\x01\x02") + 24
        return old[:at] + struct.pack("<I", size) + old[at + 4 :]

    return content(ARGOS, change)


def encrypted(folder: Path) -> None:
    def change(old: bytes) -> bytes:
        new = bytearray(old)
        for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            new[old.index(sign) + flags] |= 1
        return bytes(new)

    content(ARGOS, change)(folder)


def repacked(changes: Mapping[str, Any], method: int = zipfile.ZIP_STORED) -> Spoil:
    """Change files of a package."""

    def spoil(folder: Path) -> None:
        with zipfile.ZipFile(folder / ARGOS) as file:
            found = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(folder / ARGOS, "w", method) as file:
            for name, value in _changed(found, changes).items():
                file.writestr(name, value)

    return spoil


def damaged(folder: Path) -> None:
    """Compress a package, and overwrite a part of it."""
    repacked({}, zipfile.ZIP_DEFLATED)(folder)
    content(ARGOS, lambda old: old[:2000] + b"\xff" * 200 + old[2200:])(folder)


# --- code ------------------------------------------------------------------------------------


class Malicious:
    """Creates a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.place}/executed'",)


def malicious(how: str) -> Spoil:
    def spoil(folder: Path) -> None:
        evil = Malicious(folder.parent)
        data = pickle.dumps(evil)
        if how in ("zip", "legacy"):
            weights = {"model.shared.weight": torch.ones(SIZE, WIDTH), "x": evil}
            saved(weights, legacy=how == "legacy")(folder)
        elif how == "plain":
            (folder / PICKLED).write_bytes(data)
        elif how == "tar":  # the oldest format
            with tarfile.open(folder / PICKLED, "w") as file:
                for name in ("storages", "tensors", "pickle", "../executed"):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    file.addfile(info, io.BytesIO(data))
        elif how == "array":
            arrays({"Wemb": np.array([evil] * 3, dtype=object)})(folder)
        elif how == "member":
            member("evil.npy", data, archive=NPZ)(folder)
        else:
            for name in ("sitecustomize", "modeling_marian", "torch", "numpy", "__init__"):
                (folder / f"{name}.py").write_text("import os; os.system('touch executed')")
            custom = {"AutoModel": "modeling_marian.Model"}
            keys("config.json", auto_map=custom, trust_remote_code=True)(folder)

    return spoil
