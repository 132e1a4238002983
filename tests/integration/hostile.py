"""A small valid model of each format, and a sandbox: a process that imports models under guard.

    python -m tests.integration.hostile TEMPORARY

reads requests from its standard input and answers each with a line of JSON.
"""

import json
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from safetensors.torch import load_file

from transept import errors
from transept.apps.convert.importing import import_model
from transept.errors import TranseptError
from transept.formats import ctranslate2_writer
from transept.formats.huggingface_writer import write_marian
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.runtime.storage import part_of
from transept.text.training import train_tokenizer

REPOSITORY = Path(__file__).parents[2]
WORDS = "the old man reads a book in the house and dog sees cat beside tree"
SIZE, WIDTH, INNER = 290, 8, 16
MODELS = {
    "marian": "marian",
    "pickled": "pickled",
    "legacy": "legacy",
    "npz": "npz/model.npz",
    "ctranslate2": "ctranslate2",
    "argos": "argos/en_de.argosmodel",
}
"""The path of each format's model in the folder of `make_models`."""
IMPORTED = "imported"
UNSAFE = ".unsafe"
"""The suffix of a file that the sandbox unpickles, to show that it notices."""
TIME, MEMORY = 20, 200
"""The maximum of an import, in seconds and megabytes."""


# --- valid models ----------------------------------------------------------------------------


def make_models(folder: Path) -> None:
    chance = random.Random(1)
    lines = [" ".join(chance.choices(WORDS.split(), k=9)) for _ in range(300)]
    tokenizer = train_tokenizer(lines, vocab_size=SIZE)
    for place in MODELS.values():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
    for name in ("marian", "pickled", "legacy", "ctranslate2"):
        (folder / name).mkdir()
        sizes: dict[str, Any] = {"vocab_size": SIZE, "d_model": WIDTH, "d_ff": INNER,
                                 "attention_bias": True, "output_bias": True}  # fmt: skip
        torch.manual_seed(1)
        norm: Any = "pre" if name == "ctranslate2" else "post"
        model = Transformer(ModelConfig(n_layers=1, n_heads=2, norm=norm, **sizes))
        for parameter in model.parameters():
            parameter.data.normal_()
        if name == "ctranslate2":
            names = ctranslate2_writer.Names.of(tokenizer, tokenizer)
            ctranslate2_writer.save(model, names, folder / name, n_positions=16)
            (folder / name / "source.model").write_bytes(tokenizer.model)
            continue
        write_marian(model, tokenizer, tokenizer, folder / name)
        if name != "marian":
            weights = load_file(folder / name / "model.safetensors")
            (folder / name / "model.safetensors").unlink()
            torch.save(weights, folder / name / "pytorch_model.bin",
                       _use_new_zipfile_serialization=name == "pickled")  # fmt: skip
    entries = tokenizer.pieces_of(range(SIZE))
    np.savez(folder / "npz/model.npz", **marian_arrays())  # type: ignore[arg-type]
    (folder / "npz/source.spm").write_bytes(tokenizer.model)
    table = "".join(f"{json.dumps(entry)}: {index}\n" for index, entry in enumerate(entries))
    (folder / "npz/vocab.yml").write_text(table)
    facts = {"package_version": "1.0", "from_code": "en", "to_code": "de", "license": "CC0"}
    with zipfile.ZipFile(folder / MODELS["argos"], "w") as file:
        file.writestr("en_de/metadata.json", json.dumps(facts))
        file.writestr("en_de/sentencepiece.model", tokenizer.model)
        for path in sorted((folder / "ctranslate2").glob("*.*")):
            file.write(path, f"en_de/model/{path.name}")


def marian_arrays() -> dict[str, np.ndarray]:
    settings = {"type": "transformer", "enc-depth": 1, "dec-depth": 1, "transformer-heads": 2,
                "transformer-preprocess": '""', "transformer-postprocess": "dan",
                "transformer-ffn-activation": "relu"}  # fmt: skip
    text = "".join(f"{key}: {value}\n" for key, value in settings.items())
    arrays = {"special:model.yml": np.frombuffer(text.encode() + b"\0", np.int8)}
    generator = np.random.default_rng(1)

    def draw(name: str, *shape: int) -> None:
        arrays[name] = generator.normal(size=shape).astype(np.float32)

    draw("Wemb", SIZE, WIDTH)
    draw("decoder_ff_logit_out_b", 1, SIZE)
    for at, parts in (("encoder_l1", ["self"]), ("decoder_l1", ["self", "context"])):
        for part in parts:
            for letter in "qkvo":
                draw(f"{at}_{part}_W{letter}", WIDTH, WIDTH)
                draw(f"{at}_{part}_b{letter}", 1, WIDTH)
        for norm in [*(f"{part}_Wo" for part in parts), "ffn_ffn"]:
            draw(f"{at}_{norm}_ln_scale", 1, WIDTH)
            draw(f"{at}_{norm}_ln_bias", 1, WIDTH)
        draw(f"{at}_ffn_W1", WIDTH, INNER)
        draw(f"{at}_ffn_b1", 1, INNER)
        draw(f"{at}_ffn_W2", INNER, WIDTH)
        draw(f"{at}_ffn_b2", 1, WIDTH)
    return arrays


# --- the sandbox -----------------------------------------------------------------------------


class Sandbox:
    """A process that imports models, and is started again if one of them ends it."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, path: Path, output: Path) -> dict[str, Any]:
        """Import a model, and report the error, what was forbidden, and the memory in use."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.hostile", str(self.temporary)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
                env=os.environ | {"TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        requests.write(json.dumps([str(path), str(output)]) + "\n")
        requests.flush()
        if not (line := answers.readline()):
            code = self.close()
            for left in self.temporary.iterdir():
                shutil.rmtree(left)
            raise AssertionError(f"{path} ended the importer, or took too long: {code}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> int:
        """End the process, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.communicate()
        return process.returncode


class Attack:
    """Imports spoiled copies of models in the sandbox, and checks that they harm nothing."""

    def __init__(self, models: Path, sandbox: Sandbox, folder: Path) -> None:
        self.models, self._sandbox, self._folder = models, sandbox, folder
        (folder / "sentinel").write_text("unchanged")

    def __call__(self, kind: str, spoil: Callable[[Path], object], words: str = "") -> str:
        """The name of the error, whose message must have these words, or "imported"."""
        path, output = self._folder / MODELS[kind], self._folder / "output"
        model = path.parent if path.suffix else path
        shutil.copytree(self.models / model.name, model)
        spoil(model)
        before = contents(self._folder)
        answer = self._sandbox(path, output)
        error = answer["error"] or IMPORTED
        assert not answer["forbidden"], answer
        assert error != "another", answer["message"]
        assert answer["megabytes"] < MEMORY
        assert not any(self._sandbox.temporary.iterdir())
        assert output.exists() == (error == IMPORTED)
        if error != IMPORTED:
            assert (words or str(model)) in answer["message"], answer["message"]
        shutil.rmtree(output, ignore_errors=True)
        assert contents(self._folder) == before
        shutil.rmtree(model)
        return str(error)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


class ForbiddenError(BaseException):
    """An action that no import may take. Importers cannot catch it."""


RUNS = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen",
        "pty.spawn", "socket.", "ctypes.dlopen", "pickle.find_class")  # fmt: skip
CHANGES: dict[str, list[tuple[int, int | None]]] = {
           "os.remove": [(0, 1)], "os.mkdir": [(0, 2)], "os.rmdir": [(0, 1)],
           "os.rename": [(0, 2), (1, 3)], "os.link": [(1, 3)], "os.symlink": [(1, 2)],
           "os.chmod": [(0, 2)], "os.chown": [(0, 3)], "os.truncate": [(0, None)]}  # fmt: skip
"""Events and where in their arguments the paths are that they change, each with its dir_fd."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Guard:
    """An audit hook that forbids to run foreign code, and to write except where it is allowed."""

    def __init__(self) -> None:
        package = Path(errors.__file__).parent
        packages = [package, Path(sys.prefix), Path(os.__file__).parent]
        self._trusted = tuple(
            f"{path}{os.sep}" for path in (*packages, *map(Path.resolve, packages))
        )
        self.writable: tuple[Path, ...] | None = None
        """None: nothing is forbidden."""
        self.forbidden: list[str] = []

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.writable is not None and self._is_forbidden(event, args):
            self.forbidden.append(f"{event} {args}"[:300])
            raise ForbiddenError

    def _is_forbidden(self, event: str, args: tuple[Any, ...]) -> bool:
        if event == "exec":
            return not self._is_trusted(args[0].co_filename)
        if event == "compile":  # ast.parse, which numpy uses, makes no code
            caller = sys._getframe(2).f_code
            is_parse = caller.co_name == "parse" and caller.co_filename.endswith(f"{os.sep}ast.py")
            return not is_parse and not self._is_trusted(os.fsdecode(args[1] or "?"))
        if event == "import":
            return args[1] is not None and not self._is_trusted(args[1])
        if event == "open":
            return bool(args[2] & WRITING) and not self._is_writable(args[0], -1)
        places = CHANGES.get(event, [])
        return event.startswith(RUNS) or not all(
            self._is_writable(args[path], -1 if fd is None else args[fd]) for path, fd in places
        )

    def _is_trusted(self, file: str) -> bool:
        return file.startswith((*self._trusted, "<frozen "))

    def _is_writable(self, path: Any, directory: int) -> bool:
        if isinstance(path, int):
            return True  # open already
        base = Path() if directory == -1 else Path(f"/proc/self/fd/{directory}").readlink()
        real = (base / os.fsdecode(path)).resolve()
        return any(real.is_relative_to(place) for place in self.writable or ())


def serve(temporary: Path, requests: IO[str], answers: IO[str]) -> None:
    os.fsync = lambda fd: None
    with tempfile.TemporaryDirectory() as folder:  # imports what is imported when it is needed
        make_models(Path(folder))
        for name, place in MODELS.items():
            import_model(Path(folder, place), Path(folder, "imported", name))
    repr(torch.ones(1))  # as in messages of torch
    guard = Guard()
    sys.addaudithook(guard)
    for line in requests:
        path, output = map(Path, json.loads(line))
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        guard.forbidden.clear()
        guard.writable = (temporary, output, part_of(output))
        signal.alarm(TIME)
        answer = _import(path, output)
        signal.alarm(0)
        guard.writable = None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer |= {"forbidden": guard.forbidden, "megabytes": (peak - used) // 1024}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _import(path: Path, output: Path) -> dict[str, Any]:
    try:
        if path.suffix == UNSAFE:
            pickle.loads(path.read_bytes())
        import_model(path, output)
    except TranseptError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except BaseException:
        return {"error": "another", "message": traceback.format_exc()}
    return {"error": None, "message": ""}


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(Path(sys.argv[1]).resolve(), sys.stdin, sys.stdout)
