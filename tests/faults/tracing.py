"""Following a child system call by system call, through ptrace, to end it at the one wanted.

That is the kernel's own view: no call is missed, whichever library makes it. What a power failure
would lose besides is worked out from the calls: data that were written and not flushed, names that
were given and whose directory was not.
"""

import ctypes
import os
import platform
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long

TRACEME, SYSCALL, SETOPTIONS, SYSCALL_INFO = 0, 24, 0x4200, 0x420E
TRACE_SYSTEM_GOOD, EXIT_KILL = 1, 1 << 20
ENTRY, EXIT = 1, 2

_AARCH64 = {
    34: "mkdirat", 35: "unlinkat", 38: "renameat", 46: "ftruncate", 53: "fchmodat", 56: "openat",
    64: "write", 66: "writev", 68: "pwrite64", 71: "sendfile", 82: "fsync", 83: "fdatasync",
    276: "renameat2", 285: "copy_file_range",
}  # fmt: skip
_X86_64 = {
    1: "write", 2: "open", 18: "pwrite64", 20: "writev", 40: "sendfile", 74: "fsync",
    75: "fdatasync", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 87: "unlink",
    90: "chmod", 257: "openat", 258: "mkdirat", 263: "unlinkat", 264: "renameat", 316: "renameat2",
    326: "copy_file_range",
}  # fmt: skip
NAMES = {"aarch64": _AARCH64, "x86_64": _X86_64}.get(platform.machine(), {})
"""The calls that change what is stored, or make it lasting."""
AT_FDCWD = -100
_FIRST_IS_FILE = ("write", "writev", "pwrite64", "sendfile", "fsync", "fdatasync", "ftruncate")


class _Info(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("arch", ctypes.c_uint32),
        ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("number", ctypes.c_uint64),  # of the call at its entry; its result at its exit
        ("arguments", ctypes.c_uint64 * 6),
        ("rest", ctypes.c_uint64 * 2),
    )


def unavailable() -> str | None:
    """Why nothing can be traced here, where that is so."""
    if not NAMES:
        return f"the system calls of {platform.machine()} are not listed"
    pid = os.fork()
    if pid == 0:
        submit()
        os._exit(0)
    try:
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return "ptrace is not allowed here"
        try:
            _info(pid)
        except OSError as error:
            return f"ptrace does not tell of calls here ({error.strerror})"
        return None
    finally:
        if not os.WIFEXITED(status):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def submit() -> None:
    """In the child: be traced by the parent from here on, which waits for it to stop."""
    _libc.ptrace(TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is about to be made: its place in the order of calls, its name if it matters."""

    index: int
    name: str | None
    pid: int
    arguments: tuple[int, ...]

    @property
    def creates_or_empties(self) -> bool:
        """Whether it opens a file in such a way."""
        if self.name not in ("open", "openat"):
            return False
        flags = self.arguments[1 if self.name == "open" else 2]
        return bool(flags & (os.O_CREAT | os.O_TRUNC))

    def file(self, position: int) -> str:
        """The path of an argument that is a descriptor."""
        number = ctypes.c_int(self.arguments[position]).value
        where = "cwd" if number == AT_FDCWD else f"fd/{number}"
        return str(Path(f"/proc/{self.pid}/{where}").readlink())

    def path(self, directory: int | None, position: int) -> str:
        """The path of an argument that is text, relative to a directory's descriptor."""
        with Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(self.arguments[position])
            text = os.fsdecode(memory.read(4096).split(b"\0", 1)[0])
        here = (
            Path(f"/proc/{self.pid}/cwd").readlink() if directory is None else self.file(directory)
        )
        return os.path.normpath(Path(here) / text)


Judge = Callable[[Call], bool]


def follow(pid: int, judge: Judge, ledger: "Ledger | None" = None) -> int:
    """Follow a child that has submitted; kill it at the first call of which `judge` says so.

    Gives its exit status, as `waitpid` does.
    """
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        return status
    _ptrace(SETOPTIONS, pid, TRACE_SYSTEM_GOOD | EXIT_KILL)
    index, call, passed_on = 0, None, 0
    while True:
        _ptrace(SYSCALL, pid, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return status
        number = os.WSTOPSIG(status)
        passed_on = 0 if number == signal.SIGTRAP | 0x80 else number
        if passed_on:
            continue
        info = _info(pid)
        if info.op == ENTRY:
            call = Call(index, NAMES.get(info.number), pid, tuple(info.arguments))
            index += 1
            if judge(call):
                os.kill(pid, signal.SIGKILL)
                return os.waitpid(pid, 0)[1]
            if ledger is not None:
                ledger.enter(call)
        elif ledger is not None and call is not None:
            ledger.leave(ctypes.c_int64(info.number).value >= 0)


def _info(pid: int) -> _Info:
    info = _Info()
    _ptrace(SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
    return info


def _ptrace(request: int, pid: int, number: int, data: int | None = None) -> None:
    # SETOPTIONS and SYSCALL take their number as data, SYSCALL_INFO takes a size as address.
    address, data = (number, data) if data is not None else (0, number)
    if _libc.ptrace(request, pid, address, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


# --- what a power failure would lose ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Naming:
    """A name that was given: to a new file, or moved from another, over what was there."""

    path: str
    before: str | None = None
    replaced: bytes | None = None

    def moved(self, old: str, new: str) -> "Naming":
        before = None if self.before is None else _moved(self.before, old, new)
        return Naming(_moved(self.path, old, new), before, self.replaced)


@dataclass(slots=True)
class Ledger:
    """What has been written and named below a directory, and is not on the disk for certain.

    Removals are taken to last at once: that is the worst for whoever relies on what was there.
    """

    directory: str
    unflushed: set[str] = field(default_factory=set)
    safe: dict[str, int] = field(default_factory=dict)
    """How many bytes a file had when it was flushed: they last if more is only appended."""
    names: list[Naming] = field(default_factory=list)
    _doing: Callable[[], None] | None = None

    def enter(self, call: Call) -> None:
        """Work out what the call will have done if it succeeds."""
        self._doing = None
        if call.name is None:
            return
        if call.name in _FIRST_IS_FILE or call.name == "copy_file_range":
            path = call.file(2 if call.name == "copy_file_range" else 0)
            if self._ours(path):
                flush = call.name in ("fsync", "fdatasync")
                self._doing = lambda: self._flush(path) if flush else self.unflushed.add(path)
        elif call.name.startswith("rename"):
            at = call.name != "rename"
            before = call.path(0 if at else None, 1 if at else 0)
            path = call.path(2 if at else None, 3 if at else 1)
            if self._ours(path):
                there = Path(path)
                replaced = there.read_bytes() if there.is_file() else None
                self._doing = lambda: self._rename(Naming(path, before, replaced))
        elif call.name in ("open", "openat", "mkdir", "mkdirat"):
            at = call.name.endswith("at")
            path = call.path(0 if at else None, 1 if at else 0)
            if self._ours(path) and not os.path.lexists(path):
                self._doing = lambda: self._create(path)
            elif call.creates_or_empties:
                self.safe.pop(path, None)

    def leave(self, succeeded: bool) -> None:
        """The call has returned."""
        if succeeded and self._doing is not None:
            self._doing()
        self._doing = None

    def cut_power(self, lasting: int, chance: random.Random) -> None:
        """Lose what may be lost: names after the first few, and contents that were not flushed."""
        for naming in reversed(self.names[lasting:]):
            path = Path(naming.path)
            if naming.before is not None and path.exists():
                path.rename(naming.before)
                if naming.replaced is not None:
                    path.write_bytes(naming.replaced)
                self.unflushed = {
                    _moved(each, naming.path, naming.before) for each in self.unflushed
                }
            elif path.is_file():
                path.unlink()
            else:
                shutil.rmtree(path, ignore_errors=True)
        for name in self.unflushed:
            path = Path(name)
            if path.is_file():
                size = path.stat().st_size
                os.truncate(path, chance.randint(min(self.safe.get(name, 0), size), size))
                os.truncate(path, chance.choice([path.stat().st_size, size]))  # or zeros follow

    def _ours(self, path: str) -> bool:
        return path == self.directory or path.startswith(f"{self.directory}/")

    def _flush(self, path: str) -> None:
        self.unflushed.discard(path)
        self.safe[path] = Path(path).stat().st_size
        uncertain: list[Naming] = []
        for naming in self.names:
            if str(Path(naming.path).parent) != path:
                uncertain.append(naming)
            elif naming.before is not None:  # what came before it is to be found under the new name
                uncertain = [each.moved(naming.before, naming.path) for each in uncertain]
        self.names = uncertain

    def _create(self, path: str) -> None:
        self.safe.pop(path, None)
        self.names.append(Naming(path))

    def _rename(self, naming: Naming) -> None:
        assert naming.before is not None
        old, new = naming.before, naming.path
        self.unflushed = {_moved(each, old, new) for each in self.unflushed}
        self.safe = {_moved(each, old, new): size for each, size in self.safe.items()}
        self.names.append(naming)


def _moved(path: str, before: str, after: str) -> str:
    inside = path == before or path.startswith(f"{before}/")
    return after + path[len(before) :] if inside else path
