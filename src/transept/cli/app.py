"""The table of commands, and what happens when one fails.

Commands are registered by name and imported when they run: `--help` never waits for torch. The
line of help beside each is given here, for the same reason.
"""

import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from transept.errors import ConfigError, TranseptError
from transept.version import __version__

USAGE_ERROR = 2
DASH = "/dev/stdin"
"""What commands are given for a lone `-`."""
FRACTION = re.compile(r"[-+]?\d*\.0*[1-9]\d*")


def _shown(default: Any) -> str | None:
    """A default as one would type it; what is off or empty unless given is not news."""
    if default is None or default is False or default == ():
        return None
    if default is True:
        return "on"
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


app = App(
    name="transept",
    help="The Transformer of *Attention Is All You Need*: trained, run, evaluated, shown.",
    help_epilogue="Each command has its own --help. With --debug, errors show their traceback.",
    version=f"transept {__version__}",
    help_format="markdown",
    default_parameter=Parameter(show_default=_shown),
    suppress_keyboard_interrupt=False,
)

config = App(name="config", help="Look at configurations.")
config.command(
    "transept.cli.config:show",
    name="show",
    help="Print a config with everything it extends, overrides and defaults filled in.",
)
app.command(config)

tokenizer = App(name="tokenizer", help="Learn a vocabulary, and cut text into its pieces.")
tokenizer.command(
    "transept.cli.tokenizer:train",
    name="train",
    help="Learn a vocabulary from text.",
)
tokenizer.command(
    "transept.cli.tokenizer:encode",
    name="encode",
    help="Cut each line into pieces, or into their ids.",
)
tokenizer.command(
    "transept.cli.tokenizer:decode",
    name="decode",
    help="Put pieces, or their ids, together again.",
)
app.command(tokenizer)

data = App(name="data", help="Make, look at and fetch corpora.")
data.command(
    "transept.cli.data:prepare",
    name="prepare",
    help="Turn parallel text, or treebanks, into a corpus to train on.",
)
data.command(
    "transept.cli.data:inspect",
    name="inspect",
    help="Show what a prepared corpus holds.",
)
data.command(
    "transept.cli.data:fetch",
    name="fetch",
    help="Download a public corpus and cut it into train, dev and test.",
)
data.command(
    "transept.cli.treebanks:clean",
    name="clean",
    help="Print the trees of a treebank as a parser learns them, one a line.",
)
data.command(
    "transept.cli.treebanks:recombine",
    name="recombine",
    help="Print further trees of a treebank, with constituents exchanged.",
)
app.command(data)

recipe = App(name="recipe", help="Whole experiments, from text to a report, one command each.")
recipe.command(
    "transept.cli.recipe:list_",
    name="list",
    help="List the recipes that come with transept.",
)
recipe.command(
    "transept.cli.recipe:show",
    name="show",
    help="Print a recipe with everything it extends, overrides and defaults filled in.",
)
recipe.command(
    "transept.cli.recipe:run",
    name="run",
    help="Work a recipe out: prepare, train, average, decode, score, report.",
)
recipe.command(
    "transept.cli.recipe:compare",
    name="compare",
    help="Compare two recipes that were worked out, by paired bootstrap, on the tests they share.",
)
recipe.command(
    "transept.cli.recipe:report",
    name="report",
    help="Write the page of results, with training curves, from records alone.",
)
recipe.command(
    "transept.cli.recipe:ship",
    name="ship",
    help="Write the averaged model of a recipe in little room, with a card that tells its scores.",
)
app.command(recipe)

pieces = App(
    name="pieces", help="Directories in pieces of a size that can be moved, and whole again."
)
pieces.command(
    "transept.cli.pieces:split",
    name="split",
    help="Write a directory as pieces of a given size, with a list of their sha256.",
)
pieces.command(
    "transept.cli.pieces:join",
    name="join",
    help="Put pieces together again, every one of them and every file verified.",
)
app.command(pieces)

app.command(
    "transept.cli.demo:demo",
    name="demo",
    help="Train a small translator within minutes, and see what it has learnt.",
)
app.command(
    "transept.cli.train:train",
    name="train",
    help="Train a model, or go on where an earlier run of the same config stopped.",
)
app.command(
    "transept.cli.average:average",
    name="average",
    help="Average the weights of a run's last checkpoints into one model (section 6.1).",
)
app.command(
    "transept.cli.translate:translate",
    name="translate",
    help="Translate text: arguments, files, or standard input, line for line.",
)
app.command(
    "transept.cli.parse:parse",
    name="parse",
    help="Parse sentences: arguments, files, or standard input, a tree for each line.",
)
app.command(
    "transept.cli.evaluate:evaluate",
    name="evaluate",
    help="Score translations, or a model, by every convention at once; compare two systems.",
)
app.command(
    "transept.cli.score:score",
    name="score",
    help="Print how probable a model holds given translations to be (forced decoding).",
)
app.command(
    "transept.cli.export:export",
    name="export",
    help="Write a model for another engine: CTranslate2.",
)
app.command(
    "transept.cli.quantize:quantize",
    name="quantize",
    help="Store a model's weights in less room, and measure what that costs.",
)
app.command(
    "transept.cli.shortlist:shortlist",
    name="shortlist",
    help="Learn from a corpus which target tokens each source token can lead to.",
)
app.command(
    "transept.cli.visualize:visualize",
    name="visualize",
    help="Draw where the attention heads look, as in the paper's Figures 3 to 5.",
)
app.command(
    "transept.cli.serve:serve",
    name="serve",
    help="Serve translations over HTTP, to clients of LibreTranslate and to a page of its own.",
)
app.command(
    "transept.cli.info:info",
    name="info",
    help="Print versions, devices and the paper's models, or all about a run or model.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:
        words.remove("--debug")
    keep_freed_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An α in a table or in a help text is no reason to fail where the locale has none.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(_run(words, debug))


def keep_freed_memory() -> None:
    """Let torch's allocator hold what was freed for longer than a step takes.

    On ARM that is mimalloc, which gives memory back after 10 ms: then each step of a beam search
    over many sentences gets its own anew, page by page. It reads this once, when torch is imported.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "2000")


def _run(words: list[str], debug: bool) -> int:
    # cyclopts takes a lone `-` for an option; by custom it is a file, standard input.
    words = _before_text([DASH if word == "-" else word for word in words])
    try:
        _use_own_help(words)
        _refuse_fractions(words)
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except CycloptsError as error:
        complain(f"{_explained(error)}\nSee `transept {_command_of(words)}--help`.")
        return USAGE_ERROR
    except TranseptError as error:
        return _failed(error, words, debug)
    except (BrokenPipeError, SystemExit) as error:
        # rich leaves with 1 where it finds a broken pipe.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        # The reader has gone (`transept … | head`): not our failure, and nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A full disk, or a path that leads nowhere, wherever it shows: no defect of ours.
        return _failed(TranseptError(_refusal(error)), words, debug)


def _failed(error: TranseptError, words: list[str], debug: bool) -> int:
    if debug:
        traceback.print_exc()
    complain_once(_by_option(error, words))
    _leave_cause(error)
    return error.exit_code


def _refusal(error: OSError) -> str:
    """What the system would not do, and where, if it says so."""
    where = error.filename2 or error.filename
    what = error.strerror or str(error)
    told = f"{os.fsdecode(where)}: {what}" if isinstance(where, str | bytes | os.PathLike) else what
    return f"{told}; check the path and the room on the disk, and start again"


def _before_text(words: list[str]) -> list[str]:
    """Put `--` before the first text that begins with a dash, unless options come after it."""
    at = next((place for place, word in enumerate(words) if _is_dashed_text(word)), None)
    if "--" in words or at is None:
        return words
    rest = words[at:]
    if any(word.startswith("-") and not _is_dashed_text(word) for word in rest):
        return words
    return [*words[:at], "--", *rest]


def _is_dashed_text(word: str) -> bool:
    """Whether it is text, such as `- Hello.`, and no option: those have no space in their names."""
    return word.startswith("-") and " " in word.partition("=")[0]


def _refuse_fractions(words: list[str]) -> None:
    """Where an option counts, refuse 1.5: cyclopts would round it and say nothing."""
    words = words[: words.index("--")] if "--" in words else words
    if not any(FRACTION.search(word) for word in words):
        return
    chosen = _chosen(words)
    if chosen.default_command is None:
        return
    for argument in filter(lambda one: _counts(one.hint), chosen.assemble_argument_collection()):
        n_values, _ = argument.token_count()
        for place, word in enumerate(words):
            name, equals, value = word.partition("=")
            values = [value] if equals else words[place + 1 : place + 1 + n_values]
            wrong = next(filter(FRACTION.fullmatch, values), None)
            if name in argument.names and wrong is not None:
                raise ConfigError(f"{name}: {wrong} is no whole number; give one")


def _counts(hint: Any) -> bool:
    """Whether an option holds whole numbers."""
    parts = get_args(hint)
    return hint is int or (float not in parts and any(_counts(part) for part in parts))


def _explained(error: CycloptsError) -> str:
    if not isinstance(error, UnknownOptionError):
        return str(error)
    hint = "Text that begins with a dash goes after the options and `--`."
    if _is_dashed_text(text := error.token.keyword or error.token.value):
        return f"`{text}` is read as an option. {hint}"
    takes_text = any(one.name in ("TEXTS", "SENTENCE") for one in error.argument_collection)
    return f"{error} {hint}" if takes_text and not text.startswith("--") else str(error)


def _by_option(error: TranseptError, words: list[str]) -> str:
    """What went wrong, with the fields of configs that are options here called as those are."""
    if not isinstance(error, ConfigError):
        return str(error)
    _, chain, _ = app.parse_commands(words)
    names = [name for one in chain[-1].assemble_argument_collection() for name in one.names]
    options = {name[2:].replace("-", "_"): name for name in names if name.startswith("--")}
    lines = []
    for problem in error.problems:
        line = str(problem)
        if problem.origin is None and problem.key in options:
            # `model` may be just a word there, and what is quoted was given so.
            names_in_text = r"(?<!['\w])\w+_\w+"
            what = re.sub(
                names_in_text, lambda found: options.get(found[0], found[0]), problem.what
            )
            line = f"{options[problem.key]}: {what}"
        lines.append(line)
    return "\n".join(lines)


def complain_once(message: str) -> None:
    """Say what went wrong; of torchrun's workers on a machine, the first speaks for all."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        complain(message)


def _leave_cause(error: TranseptError) -> None:
    """Let torchrun know why its worker ends."""
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        from transept.runtime.distributed import record_cause

        record_cause(error)


def _use_own_help(words: list[str]) -> None:
    """Let a command's `--help` show its whole docstring, and no word about commands below it."""
    chosen = _chosen(words)
    if chosen.default_command is not None:
        chosen.help, chosen.help_epilogue = None, ""
        if {"--help", "-h"} & {*words}:
            chosen.usage = _usage(words, chosen)


def _usage(words: list[str], chosen: App) -> str:
    """The line of usage: what may follow is called there as it is below, and not ARGS."""
    from cyclopts.help import format_usage

    commands, execution_path, _ = app.parse_commands([one for one in words if one[:1] != "-"])
    line = str(format_usage(app, commands, execution_path=execution_path)).rstrip()
    arguments = chosen.assemble_argument_collection()
    names = [one.name for one in arguments if not (one.name.startswith("-") or one.required)]
    return line.replace("[ARGS", f"[{names[0]}") if names else line


def _chosen(words: list[str]) -> App:
    """The command that is named; `--help` is none."""
    _, chain, _ = app.parse_commands([word for word in words if not word.startswith("-")])
    return chain[-1]


def complain(message: str) -> None:
    """Say on standard error what went wrong."""
    sys.stderr.write(f"transept: {message}\n")


def write_line(text: str) -> None:
    """Write a line of results: in UTF-8, as they are read, whatever the terminal's language."""
    sys.stdout.buffer.write(f"{text}\n".encode())


def _command_of(words: list[str]) -> str:
    """The names at the start of the command line, for a pointer to the right help."""
    commands, _, _ = app.parse_commands(words)
    return "".join(f"{command} " for command in commands)
