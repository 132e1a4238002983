"""The pages of the exercises: the text and the code of each starting file, and an archive."""

import ast
import re
from pathlib import Path
from zipfile import ZipFile

TITLE = re.compile(r"Exercise (\d+): (.+?)(?: \((.+)\))?\.$")
"""The first line of a starting file: its number, its title and its section in the paper."""
PAPER = "[Attention Is All You Need](https://arxiv.org/abs/1706.03762)"


def write_exercises(exercises: Path, folder: Path) -> None:
    """Write a page per exercise, and link the pages instead of the starting files."""
    scripts = sorted(exercises.glob("[0-9]*.py"))
    for script in scripts:
        page = page_of(script.read_text(encoding="utf-8"), script.name)
        (folder / f"{script.stem}.md").write_text(page, encoding="utf-8")
    with ZipFile(folder / "exercises.zip", "w") as archive:
        for path in sorted(exercises.rglob("*.py")):
            archive.write(path, path.relative_to(exercises.parent))
    index = folder / "index.md"
    text = index.read_text(encoding="utf-8")
    text = re.sub(r"\]\((\d\d_\w+)\.py\)", r"](\1.md)", text)
    text = text.replace("this folder", "this folder ({download}`exercises.zip`)", 1)
    listed = "\n".join(script.stem for script in scripts)
    index.write_text(f"{text}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", encoding="utf-8")


def page_of(script: str, name: str) -> str:
    """A starting file as a page: its docstring as prose, its hint folded, and its code."""
    tree = ast.parse(script)
    first, _, task = (ast.get_docstring(tree) or "").partition("\n\n")
    found = TITLE.match(first)
    assert found is not None, f"{name} begins with its number and title"
    number, title, section = found.groups()
    task, _, hint = task.partition("\n\nHint: ")
    docstring = tree.body[0]
    code = "\n".join(script.splitlines()[docstring.end_lineno :]).strip("\n")
    where = f"*{section[0].upper()}{section[1:]} of {PAPER}*\n\n" if section else ""
    return f"""# {number}. {title[0].upper()}{title[1:]}

{where}{task}

<details><summary>Hint</summary>

{hint[0].upper()}{hint[1:]}

</details>

Write your answer into `{name}`, and check it with `python check.py {number}`:

```{{code-block}} python
:caption: {name}

{code}
```
"""
