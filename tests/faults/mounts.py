"""Small and read-only file systems that nobody else sees: mounts in a namespace of one's own."""

import ctypes
import os
from functools import cache
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]

NEW_MOUNTS, NEW_USERS = 0x00020000, 0x10000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 32, 4096, 16384, 1 << 18


@cache
def unavailable() -> str | None:
    """Why nothing can be mounted here, where that is so."""
    pid = os.fork()
    if pid == 0:
        try:
            enter()
            mount_disk(Path("/tmp"), "size=1m")
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return "nothing can be mounted here" if status else None


def enter() -> None:
    """See mounts of one's own from here on. Only a process with a single thread can."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _libc.unshare(NEW_MOUNTS) == 0:
        pass
    elif _libc.unshare(NEW_MOUNTS | NEW_USERS) == 0:
        for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"),
                           ("gid_map", f"0 {group} 1")):  # fmt: skip
            Path(f"/proc/self/{name}").write_text(line)
    else:
        _complain()
    _mount("none", Path("/"), "", RECURSIVE | PRIVATE)


def mount_disk(place: Path, options: str) -> None:
    """An empty file system in memory."""
    _mount("tmpfs", place, "tmpfs", 0, options)


def make_read_only(place: Path) -> None:
    """As a disk is after an error, or a share that was taken away."""
    _mount(str(place), place, "", BIND)
    _mount("none", place, "", BIND | REMOUNT | READ_ONLY)


def take_back(place: Path) -> None:
    """Undo the last mount there."""
    if _libc.umount2(bytes(place), 2) < 0:  # 2: even if it is still in use
        _complain()


def _mount(source: str, place: Path, kind: str, flags: int, options: str = "") -> None:
    if _libc.mount(source.encode(), bytes(place), kind.encode(), flags, options.encode()) < 0:
        _complain()


def _complain() -> None:
    error = ctypes.get_errno()
    raise OSError(error, os.strerror(error))
