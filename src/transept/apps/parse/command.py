"""`transept parse`: one tree per input line."""

import dataclasses
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Group, Parameter

from transept.api.parses import ParseConfig, ParseOptions
from transept.cli.app import Flag, complain, write_line
from transept.cli.lines import Files, Line, count, growing_groups, read, without_dash
from transept.cli.models import ANY_PARSER, MODEL_OPTIONS, Parsers
from transept.cli.outlets import ProgressBar
from transept.errors import ConfigError, DataError, TooLongError
from transept.runtime.interrupt import import_torch
from transept.runtime.storage import write_file
from transept.text.files import describe
from transept.text.trees import WORD
from transept.wording import counted

if TYPE_CHECKING:
    from transept.api.parser import Parser
    from transept.api.parses import Parse, ParseOutput
    from transept.tasks.parsing.linearisation import Fault
    from transept.text.trees import Tree

Treebanks = Annotated[
    tuple[Path, ...],
    Parameter(consume_multiple=True, json_list=False, negative="", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class TreeFormat:
    """The output format."""

    scores: Flag = False
    """Print score and confidence before each tree, separated by tabs."""
    indented: Flag = False
    """Print each tree on several indented lines, followed by an empty line."""
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False
    """Print one JSON object per line, with all fields."""
    svg: Path | None = None
    """Also draw the trees into this .svg file."""
    min_confidence: float | None = None
    """Omit sentences whose most likely tree has a mean log-probability per symbol below this value,
    such as -0.05. The output can be used as a treebank for training
    (`transept data prepare --trees`)."""


USUAL, PLAIN = ParseConfig(), TreeFormat()
_TIED = re.compile(r"\w\w[.!?]\Z")
"""A last word with the full stop still attached."""
INPUT = Parameter(group=Group("Input", sort_key=0))
SEARCH = Group("Search", sort_key=2)
FORMAT = Parameter(name="*", group=Group("Output", sort_key=3))


def parse(
    *texts: str,
    files: Annotated[Files, INPUT] = (),
    trees: Annotated[Treebanks, INPUT] = (),
    read_ahead: Annotated[int, INPUT] = 512,
    models: Annotated[Parsers, MODEL_OPTIONS] = ANY_PARSER,
    config: Annotated[ParseConfig, Parameter(name="*", group=SEARCH)] = USUAL,
    unconstrained: Annotated[Flag, Parameter(group=SEARCH)] = False,
    output: Annotated[TreeFormat, FORMAT] = PLAIN,
) -> None:
    """Parse sentences, files or standard input: one tree per line.

    Each input line is a sentence, tokenized as in treebanks, with spaces between the words:
    `It does n't sleep .` A bracket may be written as `(` or as `-LRB-`. Every tree is well-formed
    and contains exactly these words. An empty line gives an empty line. A sentence that is too long
    also gives an empty line: it is reported on standard error, the others are parsed, and the exit
    code is 3. If the model outputs no tags, the trees have the tags of --trees. Without --trees,
    punctuation marks are their own tags and all other words have the tag XX.

    Args:
        texts: Sentences to parse. Default: files or standard input. Write `--` before texts that
            start with a dash.
        files: UTF-8 text files, also compressed as .gz, .xz or .zst.
        trees: Treebanks to read instead of text. Their sentences are parsed again and keep their
            tags, so that `transept evalb --clean` can compare the trees.
        read_ahead: The number of lines to parse together. Larger is faster. 1 parses line by line;
            that is the default on a terminal.
        models: The model to use.
        config: The search options.
        unconstrained: Do not restrict the model to well-formed trees. Outputs that are not trees
            are counted and repaired.
        output: The output format.
    """
    _check(texts, files, trees, read_ahead)
    _check_output(output, config)
    texts = without_dash(texts)
    n_lines = None if trees else count(texts, files)
    import_torch()
    parser = models.load_parser()
    at_terminal = not (texts or files or trees) and sys.stdin.isatty()
    if at_terminal:
        sys.stderr.write("Type one sentence per line. Press Ctrl-D to end.\n")
    sentences = _from_trees(trees) if trees else _from_lines(read(texts, files))
    writer = _Writer(output, config.n_best)
    with ProgressBar("lines", n_lines, results_to_stdout=True) as bar:
        for some in growing_groups(sentences, 1 if at_terminal else read_ahead):
            options: ParseOptions = {
                "constraint": "none" if unconstrained else "trees",
                "watch": partial(bar.share, len(some)),
            }
            for result in _parse(parser, some, config, options):
                writer.write(result)
            sys.stdout.buffer.flush()
            bar.advance(len(some))
    writer.finish(unconstrained)


def _check(
    texts: Sequence[str], files: Sequence[Path], trees: Sequence[Path], read_ahead: int
) -> None:
    if sum(map(bool, (texts, files, trees))) > 1:
        raise ConfigError("give one of texts, --input and --trees, not several")
    if read_ahead < 1:
        raise ConfigError("--read-ahead must be at least 1")


def _check_output(output: TreeFormat, config: ParseConfig) -> None:
    if output.as_json and (output.indented or output.scores):
        raise ConfigError("--json prints all fields: omit --indented and --scores")
    if output.indented and config.n_best > 1:
        raise ConfigError("--n-best prints one tree per line: omit --indented")
    if output.svg is not None and output.svg.suffix != ".svg":
        raise ConfigError(f"--svg {output.svg}: its name must end in .svg")
    if output.svg is not None and not output.svg.parent.is_dir():
        raise ConfigError(f"{output.svg.parent}: is not a directory; choose another --svg")


# --- reading ---------------------------------------------------------------------------------


class _Sentence(NamedTuple):
    words: str
    tags: tuple[str, ...] | None
    place: str


def _from_lines(lines: Iterable[Line]) -> Iterator[_Sentence]:
    return (_Sentence(line.text, None, line.place) for line in lines)


def _from_trees(files: Sequence[Path]) -> Iterator[_Sentence]:
    from transept.tasks.parsing.pairs import clean_trees

    for path in files:
        for number, tree in enumerate(clean_trees([path]), start=1):
            yield _Sentence(" ".join(tree.words), tree.tags, f"{describe(path)}, tree {number}")


def _parse(
    parser: "Parser", sentences: Sequence[_Sentence], config: ParseConfig, options: ParseOptions
) -> "list[Parse]":
    """Parse sentences. A sentence that is too long has no tree."""

    def parsed(some: Sequence[_Sentence]) -> "list[Parse]":
        if some[0].tags is not None:
            options["tags"] = [sentence.tags or () for sentence in some]
        words = [sentence.words for sentence in some]
        return parser.parse(words, **options, **dataclasses.asdict(config))

    try:
        parses = parsed(sentences)
    except TooLongError as error:
        taken = list(sentences)
        for each in error.all:
            long = taken[each.number - 1]
            cure = "remove it"
            if each.enough is not None:
                cure = f"--max-source-length {each.enough} parses it anyway"
            complain(f"{long.place}: {each.what}; {cure}")
            none = None if long.tags is None else ()
            taken[each.number - 1] = long._replace(words="", tags=none)
        parses = parsed(taken)
    return [
        dataclasses.replace(parse, words=tuple(WORD.findall(sentence.words)))
        for sentence, parse in zip(sentences, parses, strict=True)
    ]


# --- writing ---------------------------------------------------------------------------------


@dataclass
class _Writer:
    """Writes trees to standard output, and a summary at the end."""

    output: TreeFormat
    n_best: int
    n_lines: int = 0
    n_kept: int = 0
    n_too_long: int = 0
    n_tied: int = 0
    faults: "Counter[Fault | None]" = field(default_factory=Counter)
    drawn: "list[Tree]" = field(default_factory=list)

    def write(self, result: "Parse") -> None:
        """Write the trees of a sentence, unless the confidence of the best is too low."""
        least = self.output.min_confidence
        self.faults.update(one.fault for one in result.outputs[:1])
        if least is None or (result.outputs and result.confidence >= least):
            self._write(result)
            self.n_kept += bool(result.outputs)
            if self.output.svg is not None and result.outputs:
                self.drawn.append(result.tree)
        self.n_lines += 1
        self.n_tied += bool(result.words and _TIED.search(result.words[-1]))
        self.n_too_long += bool(result.words and not result.outputs)

    def _write(self, result: "Parse") -> None:
        if self.output.as_json:
            write_line(json.dumps(_described(result), ensure_ascii=False))
        elif not result.outputs:
            write_line(self._framed("", 0.0, 0.0, 0.0))
        else:
            for one in result.outputs:
                write_line(self._shown(one))

    def _shown(self, one: "ParseOutput") -> str:
        from transept.apps.parse.drawing import indented

        text = f"{indented(one.tree)}\n" if self.output.indented else str(one.tree)
        return self._framed(text, one.log_probability, one.score, one.confidence)

    def _framed(self, text: str, log_p: float, score: float, confidence: float) -> str:
        """The text of a tree with the requested numbers. Empty for an empty line."""
        if self.n_best > 1:
            return f"{self.n_lines} ||| {text} ||| LogP= {log_p:.6f} ||| {score:.6f}"
        return f"{score:.6f}\t{confidence:.6f}\t{text}" if self.output.scores else text

    def finish(self, unconstrained: bool) -> None:
        """Draw the trees and print the summary."""
        from transept.apps.parse.drawing import draw_trees
        from transept.apps.svg import to_svg

        if self.output.svg is not None:
            write_file(self.output.svg, to_svg(draw_trees(self.drawn)).encode())
        n_trees = self.faults.total()
        if 2 * self.n_tied > n_trees:
            complain(
                "warning: the sentences look like plain text, but the model expects treebank "
                "tokenization: write `He does n't sleep .`, not `He doesn't sleep.`"
            )
        if self.output.min_confidence is not None:
            share = self.n_kept / max(1, n_trees)
            complain(f"kept {self.n_kept:,} of {n_trees:,} trees ({share:.1%})")
        if unconstrained:
            bad = [(fault, n) for fault, n in self.faults.most_common() if fault is not None]
            n_bad = sum(n for _, n in bad)
            listed = "".join(f"\n  {n:6,}  {fault.value}" for fault, n in bad)
            share = n_bad / max(1, n_trees)
            complain(
                f"{n_bad:,} of {n_trees:,} outputs ({share:.2%}) were not trees, and were repaired"
                + (f":{listed}" if bad else "")
            )
        if self.n_too_long:
            what = counted(self.n_too_long, "sentence")
            raise DataError(f"too long, without a tree: {what}, listed above")


def _described(result: "Parse") -> dict[str, Any]:
    return {
        "words": result.words,
        "tree": str(result) or None,
        "outputs": [
            {
                "tree": str(one.tree),
                "score": one.score,
                "log_probability": one.log_probability,
                "confidence": one.confidence,
                "fault": one.fault.value if one.fault else None,
            }
            for one in result.outputs
        ],
    }
