"""`python -m grammar [FILE]`: generate the demo's sentences. Default: into the package."""

import sys
from pathlib import Path

from grammar.file import FILE, write
from grammar.grammar import Grammar

if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    write(Grammar().splits(), path)
    print(f"{path}: {path.stat().st_size:,} bytes")
