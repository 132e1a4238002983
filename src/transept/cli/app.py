"""The table of commands, and what happens when one fails.

Commands are registered by name and imported when they run: `--help` never waits for torch. The
line of help beside each is given here, for the same reason.
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

from transept.cli.outlets import reader_has_gone, standard_streams
from transept.errors import ConfigError, TranseptError
from transept.version import __version__

USAGE_ERROR = 2
SPIN_COUNT = 100
"""How often an OpenMP thread looks for work before it sleeps; libgomp's default is 300,000.
`benchmarks/openmp_spinning.py` compares numbers."""
DASH = "/dev/stdin"
"""A lone `-`, as commands see it."""
DASHED_TEXT = "Text that begins with a dash goes after the options and `--`."


def _shown(default: Any) -> str | None:
    """A default as one would type it; None, which shows nothing, where it is off or empty."""
    if default is None or default is False or default == ():
        return None
    if default is True:
        return "on"
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _refuse_fractions(_app: App, _names: object, arguments: Iterable[Argument]) -> None:
    """Where an option is an integer, refuse 1.5, which cyclopts would round."""
    for argument in arguments:
        for token in argument.tokens if _is_integer(argument.hint) else ():
            if _is_fraction(token.value):
                raise CoercionError(token=token, argument=argument, target_type=int)


def _is_integer(hint: Any) -> bool:
    """Whether a type holds integers and no floats: `int`, `int | None`, `tuple[int, int]`."""
    parts = get_args(hint)
    return hint is int or (float not in parts and any(map(_is_integer, parts)))


def _is_fraction(value: str) -> bool:
    try:
        return not float(value).is_integer()
    except ValueError:
        return False


app = App(
    name="transept",
    help="The Transformer of *Attention Is All You Need*: trained, run, evaluated, shown.",
    help_epilogue="Each command has its own --help. With --debug, errors show their traceback.",
    version=f"transept {__version__}",
    help_format="markdown",
    default_parameter=Parameter(show_default=_shown),
    config=_refuse_fractions,
    suppress_keyboard_interrupt=False,
)

Flag = Annotated[bool, Parameter(negative="")]
"""An option that is off unless it is given; there is no `--no-` of it."""

USE = Group("Use a model", sort_key=1)
TRAIN = Group("Train one", sort_key=2)
CONVERT = Group("Convert one", sort_key=3)
HELP = Group("Help", sort_key=4)
PLACES = count()
"""Commands are listed in the order in which they are added below, which is the order of work."""


def _add(path: str, line: str, group: Group | None = None, to: App = app) -> None:
    to.command(f"transept.{path}", help=line, group=group, sort_key=next(PLACES))


def _add_family(name: str, line: str, group: Group) -> App:
    """A name with commands below it."""
    family = App(name=name, help=line, group=group, sort_key=next(PLACES))
    app.command(family)
    return family


_add("cli.translate:translate", "Translate text, files or standard input, line for line.", USE)
_add(
    "apps.serve.command:serve",
    "Serve translations over HTTP, with the API of LibreTranslate.",
    USE,
)
_add(
    "apps.parse.command:parse", "Parse sentences, files or standard input: one tree per line.", USE
)
_add("apps.parse.evalb:evalb", "Score parse trees by labelled bracketing F1.", USE)
_add("cli.score:score", "Print how probable a model finds given translations.", USE)
_add("cli.evaluate:evaluate", "Score translations, or a model, by every convention at once.", USE)
_add("cli.tune:tune", "Find the best beam size and length penalty.", USE)
_add(
    "apps.visualize.command:visualize",
    "Draw attention weights, as in the paper's Figures 3 to 5.",
    USE,
)
_add("cli.info:info", "Describe a model, run, corpus or config, or this installation.", USE)

_add("apps.recipes.demo:demo", "Train a small translation model and show its output.", TRAIN)

recipe = _add_family("recipe", "Whole experiments, from text to a report, one command each.", TRAIN)
_add(
    "apps.recipes.command:show",
    "List the bundled recipes, or print one with all defaults.",
    to=recipe,
)
_add(
    "apps.recipes.command:run",
    "Run a recipe: prepare, train, average, decode, score, report.",
    to=recipe,
)

data = _add_family("data", "Fetch and make corpora.", TRAIN)
_add("cli.data:fetch", "Download a public corpus and cut it into train, dev and test.", to=data)
_add("cli.data:prepare", "Turn parallel text, or treebanks, into a corpus to train on.", to=data)

tokenizer = _add_family("tokenizer", "Learn a vocabulary, and cut text into its pieces.", TRAIN)
_add("cli.tokenizer:train", "Learn a vocabulary from text.", to=tokenizer)
_add("cli.tokenizer:apply", "Cut each line into pieces, or join pieces to text.", to=tokenizer)

_add("cli.train:train", "Train a model, or resume a run.", TRAIN)
_add("cli.train:average", "Average a run's last checkpoints into one model (section 6.1).", TRAIN)

_add("formats.commands:export", "Write a model in fewer bits, or for another engine.", CONVERT)


def completion(shell: Literal["bash", "fish"], /) -> None:
    """Print a script for bash or fish that completes words at TAB."""
    script = app.generate_completion(shell=shell)
    # bash then completes the name of a file wherever the script has nothing to complete.
    files = "complete -o default -F _transept transept\n" if shell == "bash" else ""
    sys.stdout.write(script + files)


app.command(completion, name="--completion", group=HELP)
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
    search over many sentences would ask for its memory again, page by page. mimalloc reads the
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
    words = [DASH if word == "-" else word for word in words]
    try:
        _use_own_help(words)
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except CycloptsError as error:
        complain(f"{_explained(error)}\nSee `transept {_command_of(words)}--help`.")
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
        # A full disk or a wrong path is not a defect of this program.
        return _failed(TranseptError(_refusal(error)), words, debug)


def _failed(error: TranseptError, words: list[str], debug: bool) -> int:
    if debug:
        traceback.print_exc()
    if os.environ.get("LOCAL_RANK", "0") == "0":  # of torchrun's workers on a machine, the first
        complain(_by_option(error, words))
    if "TORCHELASTIC_ERROR_FILE" in os.environ:  # by which torchrun reports why a worker ended
        from transept.runtime.distributed import record_cause

        record_cause(error)
    return error.exit_code


def _refusal(error: OSError) -> str:
    """What the system would not do, and where, if it says so."""
    where = error.filename2 or error.filename
    what = error.strerror or str(error)
    if isinstance(where, str | bytes | os.PathLike):
        what = f"{os.fsdecode(where)}: {what}"
    return f"{what}; check the path and the room on the disk, and start again"


def _explained(error: CycloptsError) -> str:
    """The parser's own message, and a hint where an unknown option may be text or a key."""
    if not isinstance(error, UnknownOptionError):
        return str(error)
    option = error.token.keyword or error.token.value
    names = {one.name for one in error.argument_collection}
    if "OVERRIDES" in names:
        table = "experiment.model" if "NAME" in names else "model"
        return f"{error} Keys of the config have no dashes: {table}.dropout=0.2"
    if names & {"TEXTS", "SENTENCE"} and (" " in option or not option.startswith("--")):
        return f"{option!r} is read as an option. {DASHED_TEXT}"
    return str(error)


def _by_option(error: TranseptError, words: list[str]) -> str:
    """The error's message, in which arguments and keys are the command's options: `--beam-size`."""

    def option(name: str) -> str | None:
        arguments = _chosen(words).assemble_argument_collection()
        own = (one.name for one in arguments if one.field_info.name == name)
        return next((each for each in own if each.startswith("--")), None)

    if not isinstance(error, ConfigError) or not any(problem.key for problem in error.problems):
        return error.message(lambda name: option(name) or f"--{name.replace('_', '-')}")
    lines = []
    for problem in error.problems:
        named = option(problem.key) if problem.origin is None else None
        lines.append(f"{named}: {problem.what}" if named else str(problem))
    return "\n".join(lines)


def _use_own_help(words: list[str]) -> None:
    """Let a command's `--help` show its whole docstring, and not the epilogue about commands."""
    chosen = _chosen(words)
    if chosen.default_command is not None:
        chosen.help, chosen.help_epilogue = None, ""


def _chosen(words: list[str]) -> App:
    """The command that the words name; options among them, such as `--help`, do not matter."""
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
