"""The list of commands, and error handling.

Commands are registered by name and imported when they run, so `--help` does not import torch. Their
one-line help texts are given here for the same reason.
"""

import io
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Annotated, Any, Literal, NoReturn, get_args

from cyclopts import (
    App,
    Argument,
    CoercionError,
    CycloptsError,
    Group,
    Parameter,
    UnknownOptionError,
)

from transept.cli.outlets import standard_streams, stdout_was_closed
from transept.errors import ConfigError, TranseptError
from transept.version import __version__

USAGE_ERROR = 2
SPIN_COUNT = 100
"""How often an OpenMP thread polls for work before it sleeps. libgomp's default is 300,000.
`benchmarks/openmp_spinning.py` compares values."""
DASH = "/dev/stdin"
"""The argument `-` is replaced by this path."""
DASHED_TEXT = "Put text that begins with a dash after the options and `--`."


def _format_default(default: Any) -> str | None:
    """A default as it is typed. None hides it: it is off or empty."""
    if default is None or default is False or default == ():
        return None
    if default is True:
        return "on"
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _reject_fractions(_app: App, _names: object, arguments: Iterable[Argument]) -> None:
    """Reject 1.5 for an integer option. cyclopts would round it."""
    for argument in arguments:
        for token in argument.tokens if _is_integer(argument.hint) else ():
            if _is_fraction(token.value):
                raise CoercionError(token=token, argument=argument, target_type=int)


def _is_integer(hint: Any) -> bool:
    """Whether a type has integers but not floats: `int`, `int | None`, `tuple[int, int]`."""
    parts = get_args(hint)
    return hint is int or (float not in parts and any(map(_is_integer, parts)))


def _is_fraction(value: str) -> bool:
    try:
        return not float(value).is_integer()
    except ValueError:
        return False


app = App(
    name="transept",
    help="Train, evaluate, serve and visualize the Transformer of *Attention Is All You Need*.",
    help_epilogue="Each command has its own --help. With --debug, errors print a traceback.",
    version=f"transept {__version__}",
    help_format="markdown",
    default_parameter=Parameter(show_default=_format_default),
    config=_reject_fractions,
    suppress_keyboard_interrupt=False,
)

Flag = Annotated[bool, Parameter(negative="")]
"""An option that is off by default and does not have a `--no-` form."""

USE = Group("Use a model", sort_key=1)
TRAIN = Group("Train a model", sort_key=2)
CONVERT = Group("Convert a model", sort_key=3)
HELP = Group("Help", sort_key=4)
SORT_KEYS = count()
"""Commands are listed in the order in which they are added below."""


def _add(
    path: str, line: str, group: Group | None = None, *, to: App = app, name: str | None = None
) -> None:
    to.command(f"transept.{path}", name=name, help=line, group=group, sort_key=next(SORT_KEYS))


def _add_family(name: str, line: str, group: Group) -> App:
    """Add a command with subcommands."""
    family = App(name=name, help=line, group=group, sort_key=next(SORT_KEYS))
    app.command(family)
    return family


_add("cli.translate:translate", "Translate text, files or standard input.", USE)
_add(
    "apps.serve.command:serve",
    "Serve translations over HTTP, with the API of LibreTranslate.",
    USE,
)
_add(
    "apps.parse.command:parse", "Parse sentences, files or standard input: one tree per line.", USE
)
_add("apps.parse.evalb:evalb", "Score parse trees by labelled bracketing F1.", USE)
_add("cli.score:score", "Print the probability that a model assigns to given translations.", USE)
_add("cli.evaluate:evaluate", "Score translations, or a model, with BLEU and chrF.", USE)
_add("cli.tune:tune", "Find the best beam size and length penalty.", USE)
_add(
    "apps.visualize.command:visualize",
    "Draw attention weights, as in the paper's Figures 3 to 5.",
    USE,
)
_add("cli.info:info", "Describe a model, run, corpus or config, or this installation.", USE)

_add("apps.recipes.demo:demo", "Train a small translation model and show its output.", TRAIN)

recipe = _add_family("recipe", "Run complete experiments, from text to a report.", TRAIN)
_add(
    "apps.recipes.command:show",
    "List the bundled recipes, or print one with all defaults.",
    to=recipe,
)
_add(
    "apps.recipes.command:run",
    "Run a recipe, from text to a scored model.",
    to=recipe,
)

data = _add_family("data", "Download and prepare corpora.", TRAIN)
_add("cli.data:fetch", "Download a public corpus and split it into train, dev and test.", to=data)
_add("cli.data:prepare", "Prepare parallel text or treebanks for training.", to=data)

tokenizer = _add_family("tokenizer", "Learn a vocabulary and split text into subwords.", TRAIN)
_add("cli.tokenizer:train", "Learn a vocabulary from text.", to=tokenizer)
_add("cli.tokenizer:apply", "Split lines into subwords, or join subwords to text.", to=tokenizer)

_add("cli.train:train", "Train a model, or resume a run.", TRAIN)
_add("cli.train:average", "Average a run's last checkpoints into one model (section 6.1).", TRAIN)

_add("apps.convert.commands:import_", "Import a model of another toolkit.", CONVERT, name="import")
_add(
    "apps.convert.commands:export", "Quantize a model, or convert it for another toolkit.", CONVERT
)


def completion(shell: Literal["bash", "fish"], /) -> None:
    """Print a completion script for bash or fish."""
    script = app.generate_completion(shell=shell)
    # Complete file names if the script does not have a completion.
    files = "complete -o default -F _transept transept\n" if shell == "bash" else ""
    sys.stdout.write(script + files)


app.command(completion, name="--completion", group=HELP)
app["--help"].group = app["--version"].group = HELP


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:
        words.remove("--debug")
    keep_freed_memory()
    limit_spinning()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print `?` for characters that the locale cannot encode, such as α.
        sys.stdout.reconfigure(errors="replace")
    with standard_streams():
        code = _run(words, debug)
    sys.exit(code)


def keep_freed_memory() -> None:
    """Make torch's allocator keep freed memory for longer than one decoding step.

    On ARM, torch uses mimalloc, which returns memory to the system after 10 ms. Each step of a beam
    search over many sentences would then allocate its memory again, page by page. mimalloc reads
    the variable once, when torch is imported.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "2000")


def limit_spinning() -> None:
    """Make torch's threads sleep soon when they wait for one another.

    By default, OpenMP's threads spin for milliseconds. If another process needs a core, they spin
    while the thread that they wait for should run, and a training step takes several times as long.
    libgomp reads the variables once, when torch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))


def _run(words: list[str], debug: bool) -> int:
    # cyclopts parses `-` as an option; by convention it means standard input.
    words = [DASH if word == "-" else word for word in words]
    try:
        _use_full_help(words)
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except CycloptsError as error:
        complain(f"{_usage_message(error)}\nSee `transept {_command_name(words)}--help`.")
        return USAGE_ERROR
    except TranseptError as error:
        return _report_failure(error, words, debug)
    except (OSError, SystemExit) as error:
        # rich exits with code 1 when it finds a broken pipe.
        cause = error.__context__ if isinstance(error, SystemExit) else error
        if isinstance(cause, BrokenPipeError) and stdout_was_closed():
            # `transept … | head` is not a failure, and a message could not be read.
            return 0
        if isinstance(error, SystemExit):
            raise
        # A full disk or a wrong path is not a bug.
        return _report_failure(TranseptError(_os_error_message(error)), words, debug)


def _report_failure(error: TranseptError, words: list[str], debug: bool) -> int:
    if debug:
        traceback.print_exc()
    if os.environ.get("LOCAL_RANK", "0") == "0":  # only torchrun's first worker on a machine
        complain(_error_message(error, words))
    if "TORCHELASTIC_ERROR_FILE" in os.environ:  # torchrun reads the cause from it
        from transept.runtime.distributed import record_cause

        record_cause(error)
    return error.exit_code


def _os_error_message(error: OSError) -> str:
    """The path, if known, and the cause."""
    where = error.filename2 or error.filename
    what = error.strerror or str(error)
    if isinstance(where, str | bytes | os.PathLike):
        what = f"{os.fsdecode(where)}: {what}"
    return f"{what}; check the path and the free disk space, and try again"


def _usage_message(error: CycloptsError) -> str:
    """The parser's message, with a hint if an unknown option may be text or a config key."""
    if not isinstance(error, UnknownOptionError):
        return str(error)
    option = error.token.keyword or error.token.value
    names = {one.name for one in error.argument_collection}
    if "OVERRIDES" in names:
        table = "experiment.model" if "NAME" in names else "model"
        return f"{error} Config keys are given without dashes: {table}.dropout=0.2"
    if names & {"TEXTS", "SENTENCE"} and (" " in option or not option.startswith("--")):
        return f"{option!r} is parsed as an option. {DASHED_TEXT}"
    return str(error)


def _error_message(error: TranseptError, words: list[str]) -> str:
    """The error's message, with arguments and keys written as options: `--beam-size`."""

    def option(name: str) -> str | None:
        arguments = _selected_command(words).assemble_argument_collection()
        own = (one.name for one in arguments if one.field_info.name == name)
        return next((each for each in own if each.startswith("--")), None)

    if not isinstance(error, ConfigError) or not any(problem.key for problem in error.problems):
        return error.message(lambda name: option(name) or f"--{name.replace('_', '-')}")
    lines = []
    for problem in error.problems:
        named = option(problem.key) if problem.origin is None else None
        lines.append(f"{named}: {problem.what}" if named else str(problem))
    return "\n".join(lines)


def _use_full_help(words: list[str]) -> None:
    """Make a command's `--help` show its whole docstring instead of the common epilogue."""
    chosen = _selected_command(words)
    if chosen.default_command is not None:
        chosen.help, chosen.help_epilogue = None, ""


def _selected_command(words: list[str]) -> App:
    """The command given by the words. Options among them, such as `--help`, are ignored."""
    _, chain, _ = app.parse_commands([word for word in words if not word.startswith("-")])
    return chain[-1]


def complain(message: str) -> None:
    """Print a message to standard error."""
    sys.stderr.write(f"transept: {message}\n")


def write_line(text: str) -> None:
    """Write a line of results in UTF-8, regardless of the locale."""
    sys.stdout.buffer.write(f"{text}\n".encode())


def _command_name(words: list[str]) -> str:
    """The command's name, to refer to its help."""
    commands, _, _ = app.parse_commands(words)
    return "".join(f"{command} " for command in commands)
