"""Read files of other toolkits. An error names the file."""

import json
from pathlib import Path
from typing import Any

from transept.errors import CheckpointError


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        value = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is not JSON ({error}); use another copy") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: is not a JSON object; use another copy")
    return value


def read_bytes(path: Path) -> bytes:
    """Read a whole file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
