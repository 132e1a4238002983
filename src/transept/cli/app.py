"""The table of commands, and what happens when one fails.

Commands are registered by name and imported when they run: `--help` never waits for torch. The
line of help beside each is given here, for the same reason.
"""

import inspect
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import count
from typing import Annotated, Any, NoReturn, get_args

from cyclopts import (
    App,
    Argument,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
)

from transept.cli.options import likely, likely_key
from transept.cli.outlets import reader_has_gone, standard_streams
from transept.errors import ConfigError, TranseptError
from transept.version import __version__

USAGE_ERROR = 2
SPIN_COUNT = 100
"""How often an OpenMP thread looks for work before it sleeps; libgomp's default is 300,000.
`benchmarks/openmp_spinning.py` compares numbers."""
DASH = "/dev/stdin"
"""What commands are given for a lone `-`."""
FRACTION = re.compile(r"[-+]?\d*\.0*[1-9]\d*")
SINGLE_DASH = re.compile("-[a-z][a-z-]+")
DASHED_TEXT = "Text that begins with a dash goes after the options and `--`."


def _shown(default: Any) -> str | None:
    """A default as one would type it; None, which shows nothing, where it is off or empty."""
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

Flag = Annotated[bool, Parameter(negative="")]
"""An option that is off unless it is given; there is no `--no-` of it."""

USE = Group("Use a model", sort_key=1)
TRAIN = Group("Train one", sort_key=2)
MOVE = Group("Make it smaller, move it", sort_key=3)
HELP = Group("Help", sort_key=4)
PLACES = count()
"""Commands are listed in the order in which they are added below, which is the order of work."""


def _add(path: str, line: str, group: Group | None = None, to: App = app) -> None:
    to.command(f"transept.cli.{path}", help=line, group=group, sort_key=next(PLACES))


def _add_family(name: str, line: str, group: Group) -> App:
    """A name with commands below it."""
    family = App(name=name, help=line, group=group, sort_key=next(PLACES))
    app.command(family)
    return family


_add("translate:translate", "Translate text, files or standard input, line for line.", USE)
_add("serve:serve", "Serve translations over HTTP: a page, and LibreTranslate's API.", USE)
_add("parse:parse", "Parse sentences, files or standard input, a tree for each line.", USE)
_add("score:score", "Print how probable a model finds given translations.", USE)
_add("evaluate:evaluate", "Score translations, or a model, by every convention at once.", USE)
_add("visualize:visualize", "Draw where the heads look, as in the paper's Figures 3 to 5.", USE)
_add("info:info", "Tell all about a model or a run, or about this installation.", USE)

_add("demo:demo", "Train a small translator, and see what it learnt.", TRAIN)

recipe = _add_family("recipe", "Whole experiments, from text to a report, one command each.", TRAIN)
_add("recipe:show", "List the bundled recipes, or print one with all defaults.", to=recipe)
_add("recipe:run", "Run a recipe: prepare, train, average, decode, score, report.", to=recipe)

data = _add_family("data", "Fetch, make and look at corpora.", TRAIN)
_add("data:fetch", "Download a public corpus and cut it into train, dev and test.", to=data)
_add("data:prepare", "Turn parallel text, or treebanks, into a corpus to train on.", to=data)
_add("data:inspect", "Show what a prepared corpus holds.", to=data)
_add("treebanks:clean", "Print a treebank's trees as a parser learns them, one a line.", to=data)
_add("treebanks:recombine", "Print more trees of a treebank, with constituents exchanged.", to=data)

tokenizer = _add_family("tokenizer", "Learn a vocabulary, and cut text into its pieces.", TRAIN)
_add("tokenizer:train", "Learn a vocabulary from text.", to=tokenizer)
_add("tokenizer:encode", "Cut each line into pieces, or into their ids.", to=tokenizer)
_add("tokenizer:decode", "Put pieces, or their ids, together again.", to=tokenizer)

config = _add_family("config", "Look at configurations.", TRAIN)
_add("config:show", "Print a config, with what it extends, overrides and defaults.", to=config)

_add("train:train", "Train a model, or go on where an earlier run stopped.", TRAIN)
_add("average:average", "Average a run's last checkpoints into one model (section 6.1).", TRAIN)

_add("quantize:quantize", "Store a model in less room, and measure what that costs.", MOVE)
_add("shortlist:shortlist", "Learn which target tokens each source token can lead to.", MOVE)
_add("export:export", "Write a model for another engine: CTranslate2.", MOVE)

pieces = _add_family(
    "pieces", "Cut a directory into pieces that can be moved, and join them.", MOVE
)
_add("pieces:split", "Write a directory as pieces of a given size, with their sha256.", to=pieces)
_add("pieces:join", "Put pieces together again, every one and every file verified.", to=pieces)

_add("completion:completion", "Print a script that completes commands and options at TAB.", HELP)
app["--help"].group = app["--version"].group = HELP


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:
        words.remove("--debug")
    keep_freed_memory()
    limit_spinning()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where the locale cannot print the α of a table or a help text, `?` stands for it.
        sys.stdout.reconfigure(errors="replace")
    with standard_streams():
        code = _run(words, debug)
    sys.exit(code)


def keep_freed_memory() -> None:
    """Let torch's allocator keep freed memory for longer than a step takes.

    On ARM that is mimalloc, which gives memory back to the system after 10 ms: each step of a beam
    search over many sentences would ask for its memory anew, page by page. mimalloc reads the
    variable once, when torch is imported.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "2000")


def limit_spinning() -> None:
    """Let torch's threads sleep soon when they wait for one another.

    By default, OpenMP's threads spin for milliseconds. Where another process needs a core, they
    spin for the time in which the thread that they wait for should run, and a training step takes
    several times as long. libgomp reads the variables once, when torch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))


def _run(words: list[str], debug: bool) -> int:
    # cyclopts takes a lone `-` for an option; by custom it is a file, standard input.
    words = _before_text([DASH if word == "-" else word for word in words])
    try:
        _use_own_help(words)
        _refuse_fractions(words)
        _refuse_single_dashes(words)
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except CycloptsError as error:
        complain(f"{_explained(error, words)}\nSee `transept {_command_of(words)}--help`.")
        return USAGE_ERROR
    except TranseptError as error:
        return _failed(error, words, debug)
    except (OSError, SystemExit) as error:
        # rich exits with code 1 when it finds a broken pipe.
        cause = error.__context__ if isinstance(error, SystemExit) else error
        if isinstance(cause, BrokenPipeError) and reader_has_gone():
            # `transept … | head`: not a failure, and there is no reader for a message.
            return 0
        if isinstance(error, SystemExit):
            raise
        # A full disk or a wrong path is no defect of this program, wherever it shows.
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
    """Whether it is text, such as `- Hello.`: the name of an option has no space in it."""
    return word.startswith("-") and " " in word.partition("=")[0]


def _refuse_fractions(words: list[str]) -> None:
    """Where an option counts, refuse 1.5: cyclopts would round it and say nothing."""
    words = _before_end(words)
    if not any(FRACTION.search(word) for word in words):
        return
    for argument in filter(lambda one: _counts(one.hint), _arguments(words)):
        n_values, _ = argument.token_count()
        for place, word in enumerate(words):
            name, equals, value = word.partition("=")
            values = [value] if equals else words[place + 1 : place + 1 + n_values]
            wrong = next(filter(FRACTION.fullmatch, values), None)
            if name in argument.names and wrong is not None:
                raise ConfigError(f"{name}: {wrong} is no whole number; give one")


def _refuse_single_dashes(words: list[str]) -> None:
    """Refuse `-output x`, as some toolkits have it: it would be read as `-o utput` and a text x."""
    for word in filter(SINGLE_DASH.fullmatch, _before_end(words)):
        if any(f"-{word}" in one.names for one in _arguments(words)):
            raise ConfigError(f"Unknown option: {word}. Did you mean -{word}?")


def _before_end(words: list[str]) -> list[str]:
    """The words among which there may be options: those before `--`."""
    return words[: words.index("--")] if "--" in words else words


def _counts(hint: Any) -> bool:
    """Whether an option holds whole numbers."""
    parts = get_args(hint)
    return hint is int or (float not in parts and any(_counts(part) for part in parts))


def _explained(error: CycloptsError, words: list[str]) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        return _unknown_command(error, error.unused_tokens[0])
    if isinstance(error, MissingArgumentError) and (stranger := _stranger(words)):
        # That is why it is missing: `score --src a --tgt b` has no --source.
        return _unknown_option(stranger, _arguments(words))
    if not isinstance(error, UnknownOptionError):
        return str(error)
    if _is_dashed_text(text := error.token.keyword or error.token.value):
        return f"`{text}` is read as an option. {DASHED_TEXT}"
    return _unknown_option(text, error.argument_collection)


def _unknown_command(error: UnknownCommandError, word: str) -> str:
    if word.startswith("-"):
        option, near = word.partition("=")[0], likely(word, app)
        cure = f" Did you mean {near}?" if near in ("--help", "--version") else ""
        return f"Unknown option: {option}.{cure} A command's own options come after its name."
    if " " in word:
        return f'Unknown command "{word}". Text comes after a command: transept translate "{word}"'
    return str(error)


def _unknown_option(option: str, arguments: Sequence[Argument]) -> str:
    """Say so, and what may have been meant."""
    option, _, _ = option.partition("=")
    told = f"Unknown option: {option}."
    near = likely(option, [name for one in arguments if one.parse for name in one.names])
    if near and near.startswith("--"):
        return f"{told} Did you mean {near}?"
    if near:
        return f"{told} {near} is given by itself, without an option."
    names = {one.name for one in arguments}
    if "OVERRIDES" in names:
        change = f"{key}=…" if (key := likely_key(option)) else "model.dropout=0.2"
        of_recipe = "experiment." if "NAME" in names else ""
        return f"{told} Keys of the config have no dashes: {of_recipe}{change}"
    if names & {"TEXTS", "SENTENCE"} and not option.startswith("--"):
        return f"{told} {DASHED_TEXT}"
    return told


def _stranger(words: list[str]) -> str | None:
    """The first option that the command does not have."""
    names = {name for one in _arguments(words) for name in one.names}
    given = (word.partition("=")[0] for word in _before_end(words) if word.startswith("--"))
    return next((option for option in given if option.replace("_", "-") not in names), None)


def _by_option(error: TranseptError, words: list[str]) -> str:
    """The error's message, in which a field of a config is called by its option: `--beam-size`."""
    if not isinstance(error, ConfigError):
        return str(error)
    names = [name for one in _arguments(words) for name in one.names]
    options = {name[2:].replace("-", "_"): name for name in names if name.startswith("--")}
    lines = []
    for problem in error.problems:
        line = str(problem)
        if problem.origin is None and problem.key in options:
            # Only names with an underscore: `model` may be a plain word of the message. And not
            # what stands in quotes: the user gave that.
            names_in_text = r"(?<!['\w])\w+_\w+"
            what = re.sub(
                names_in_text, lambda found: options.get(found[0], found[0]), problem.what
            )
            line = f"{options[problem.key]}: {what}"
        lines.append(line)
    return "\n".join(lines)


def complain_once(message: str) -> None:
    """Say what went wrong; of torchrun's workers on a machine, only the first does."""
    if os.environ.get("LOCAL_RANK", "0") == "0":
        complain(message)


def _leave_cause(error: TranseptError) -> None:
    """Let torchrun know why its worker ends."""
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        from transept.runtime.distributed import record_cause

        record_cause(error)


def _use_own_help(words: list[str]) -> None:
    """Let a command's `--help` show its whole docstring, and not the epilogue about commands."""
    chosen = _chosen(words)
    if chosen.default_command is not None:
        chosen.help, chosen.help_epilogue = None, ""
        if {"--help", "-h"} & {*words}:
            chosen.usage = _usage(words, chosen.default_command)


def _usage(words: list[str], command: Callable[..., Any]) -> str:
    """The line of usage, in which an argument has the name that the help gives it, not ARGS."""
    from cyclopts.help import format_usage

    commands, execution_path, _ = app.parse_commands([one for one in words if one[:1] != "-"])
    line = str(format_usage(app, commands, execution_path=execution_path)).rstrip()
    # From the signature, because cyclopts would need a while to go through all options once more.
    parameters = inspect.signature(command).parameters.values()
    names = [one.name.upper() for one in parameters if one.kind is not one.KEYWORD_ONLY]
    return line.replace("[ARGS", f"[{names[-1]}") if names else line


def _chosen(words: list[str]) -> App:
    """The command that the words name; options among them, such as `--help`, do not matter."""
    _, chain, _ = app.parse_commands([word for word in words if not word.startswith("-")])
    return chain[-1]


def _arguments(words: list[str]) -> Sequence[Argument]:
    """The arguments and options of the command that the words name."""
    chosen = _chosen(words)
    return chosen.assemble_argument_collection() if chosen.default_command else []


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
