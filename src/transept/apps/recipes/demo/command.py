"""`transept demo`: from nothing to a translator, in one command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transept.cli.outlets import outlive_readers
from transept.errors import RESUMABLE, ConfigError

if TYPE_CHECKING:
    from transept.apps.recipes.demo.plan import DemoPlan
    from transept.apps.recipes.demo.stages import Demo
    from transept.apps.recipes.demo.view import DemoView

PIPE_WIDTH = 100


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("runs/demo"),
    data: Path | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    pairs: int | None = None,
    steps: int | None = None,
    seed: int = 1,
) -> int:
    """Train a small translator, and see what it learnt.

    Learns a vocabulary from built-in English and German sentences, trains a Transformer, averages
    its last checkpoints and translates sentences that it has never seen. It works offline and
    without a GPU. The training takes some four minutes on two free cores, and longer on a slow or
    busy machine; it prints how long after the first steps. Stopped with Ctrl-C or SIGTERM, the
    command ends with exit code 75 and shows no translations. The same command then resumes.
    Completed stages are not repeated.

    Args:
        output: Where everything goes.
        data: A folder with files of your own, one sentence a line: train.en and train.de, for
            example; .gz, .xz and .zst are read too. If it has no files dev and test of the same
            kind, sentences of train are held out for them.
        source_language: The suffix of the files to translate from. By default that of the files
            found; if one of the two is en, that.
        target_language: The suffix of the files to translate into.
        pairs: Train on at most this number of sentence pairs. Default: all 80,000 built-in pairs,
            or a million of your own.
        steps: Train for this number of steps. With fewer than the default, 2,320 on the built-in
            sentences and 1,200 on your own files, the results are marked as those of a training cut
            short. A later command with more steps, or without this option, resumes the training.
        seed: Decides the network's initial weights, the order of the training pairs, and which
            sentences of your own files are held out.
    """
    from rich.console import Console

    from transept.apps.recipes.demo.view import DemoView
    from transept.runtime.interrupt import import_torch, terminable

    outlive_readers()
    if steps is not None and steps < 1:
        raise ConfigError("--steps must be at least 1")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    view = DemoView(console)
    try:
        with terminable():
            import_torch()
            plan = _plan(data, source_language, target_language, pairs, seed)
            return _run(plan, output, steps, view)
    except KeyboardInterrupt:
        view.stopped()
        return RESUMABLE


def _plan(
    data: Path | None, source: str | None, target: str | None, pairs: int | None, seed: int
) -> "DemoPlan":
    from transept.apps.recipes.demo.plan import MOST_OWN_PAIRS, DemoPlan
    from transept.apps.recipes.demo.texts import choose_languages

    if data is None:
        if (source, target) != (None, None):
            raise ConfigError(
                "--source-language and --target-language belong to --data: without files of your "
                "own, the demo translates English into German"
            )
        return DemoPlan(seed=seed) if pairs is None else DemoPlan(pairs=pairs, seed=seed)
    source, target = choose_languages(data, source, target)
    return DemoPlan(
        data=data,
        source_language=source,
        target_language=target,
        pairs=MOST_OWN_PAIRS if pairs is None else pairs,
        seed=seed,
    )


def _run(plan: "DemoPlan", output: Path, steps: int | None, view: "DemoView") -> int:
    view.title(plan)
    with view.waiting("waking up"):
        from transept.apps.recipes.demo.stages import Demo

    demo = Demo(output, plan, steps)
    demo.begin()
    view.stage("text", demo.make_text)
    view.stage("vocabulary", demo.learn_vocabulary)
    view.stage("ids", demo.prepare_corpora)
    if not _train(demo, view):
        view.stopped()
        return RESUMABLE
    view.stage("average", demo.average)
    view.stage("translation", demo.translate)
    _show(demo, view)
    return 0


def _train(demo: "Demo", view: "DemoView") -> bool:
    """Train until the end; False if someone stopped it before."""
    already = demo.is_trained()
    if not already:
        max_steps = demo.experiment().training.max_steps
        watch = view.training(max_steps)
        try:
            outcome = demo.train([watch, view.estimate(max_steps)])
        finally:
            watch.close()
        if outcome == "stopped":
            return False
    view.trained(demo, already=already)
    return True


def _show(demo: "Demo", view: "DemoView") -> None:
    """What came of it, what it looks at, where it lies, what to do next."""
    from transept.apps.recipes.demo.results import choose, most_telling
    from transept.apps.visualize.terminal import attend

    samples, transducer = demo.samples(), demo.transducer()
    typed = demo.typed(transducer)
    view.cut_short(demo)
    if typed:
        view.samples("Held-out sentences: training never put these words together", choose(samples))
        view.samples("Sentences that a person might type", typed)
    else:
        view.samples("Test sentences", choose(samples))
    view.results(demo)
    if (drawn := most_telling(typed or samples)) is not None:
        view.attention(attend(transducer, drawn.source, drawn.ours))
    view.places(demo)
    view.next_commands(demo, (typed or samples)[0].source)
