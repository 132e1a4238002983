"""How a notebook of a chapter runs elsewhere: it installs the package, and opens in Colab."""

import re
import tomllib
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
INSTALL = """\
# Install transept if it is missing: the wheel beside this notebook, or the repository.
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

if not (find_spec("transept") and find_spec("matplotlib")):
    wheels = [str(path) for path in Path().glob("transept-*.whl")]
    source = wheels[0] if wheels else ADDRESS
    assert source, "put the wheel of transept beside this notebook: `make notebooks` writes both"
    command = [sys.executable, "-m", "pip", "install", "--quiet", source, "matplotlib"]
    subprocess.run(command, check=True)
    importlib.invalidate_caches()"""
LINK = re.compile(r"\[([^]]+)\]\((?!https?:)[^)]*\)")
"""A link to another page of the site, which a notebook does not have."""


def repository() -> str | None:
    """The address of the repository, if pyproject.toml names one."""
    about = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    address: str | None = about.get("urls", {}).get("Repository")
    return address


def opening(address: str | None) -> dict[str, Any]:
    """The first cell of each notebook."""
    source = INSTALL.replace("ADDRESS", repr(f"git+{address}" if address else ""))
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "install",
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def without_links(prose: str) -> str:
    """Prose with the text of links to pages of the site, without their addresses."""
    return LINK.sub(r"\1", prose)


def offer(notebook: str, address: str | None) -> str:
    """The sentence about a notebook at the end of its chapter's page."""
    said = f"This chapter as a notebook: {{download}}`{notebook} <{notebook}>`."
    return f"{said} [Open it in Colab]({in_colab(notebook, address)})." if address else said


def in_colab(notebook: str, address: str) -> str:
    """The address that opens a notebook of the branch `notebooks` in Colab."""
    where = address.removeprefix("https://github.com/").removesuffix(".git").strip("/")
    return f"https://colab.research.google.com/github/{where}/blob/notebooks/{notebook}"
