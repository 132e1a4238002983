"""`transept demo`: the recipe `demo` in one command, with examples and a picture at the end.

It is run by the stages of every recipe, in a work directory of the same form. The command adds
another choice of the text, of the seed and of the number of steps, and presents the results.
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from transept.apps.recipes import recipe
from transept.apps.recipes.command import run_stages
from transept.apps.recipes.recipe import STAGES, Recipe, RecipeText, TestSet, TextPair
from transept.apps.recipes.sentences import built_in, choose_languages
from transept.cli.outlets import ignore_closed_stdout
from transept.errors import RESUMABLE, ConfigError

if TYPE_CHECKING:
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.view import DemoView, SampleTranslation

CUSTOM: Final = (
    "sentences.pairs=1000000",
    "experiment.model={vocab_size=4000, d_ff=512, n_heads=4, dropout=0.1}",
    "experiment.batch={source_tokens=1500, target_tokens=1500, max_length=100}",
    "experiment.loss.label_smoothing=0.1",
    "experiment.schedule={warmup_steps=150, factor=0.4}",
    "experiment.training.max_steps=1200",
    "experiment.validation.every_steps=300",
    "experiment.checkpoint.every_steps=60",
    "average={last=10, interval=0.05}",
)
"""What differs on custom files: as much network as learns something in 1,200 steps. Real text is
small and is seen often, so dropout and label smoothing are the paper's. More than a million pairs
cannot be read within minutes."""
SHOWN: Final = 8
"""Sentences of the test set that are shown, chosen by chance alone."""


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
    busy machine; its progress shows the time left. Stopped with Ctrl-C or SIGTERM, the
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
    from transept.apps.recipes.view import RecipeView
    from transept.runtime.interrupt import import_torch, terminable

    ignore_closed_stdout()
    if steps is not None and steps < 1:
        raise ConfigError("--steps must be at least 1")
    try:
        with terminable():
            import_torch()
            whole = _chosen(data, source_language, target_language, pairs, seed)
            return _run(whole, output, steps)
    except KeyboardInterrupt:
        RecipeView().stopped()
        return RESUMABLE


def _run(whole: Recipe, output: Path, steps: int | None) -> int:
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.view import DemoView

    view = DemoView(whole)
    run = RecipeRun(name="demo", recipe=whole, directory=output)
    run.begin("output")
    if steps is not None:
        run = replace(run, recipe=whole.trained_for(steps))
    if not run_stages(run, STAGES, view):
        return RESUMABLE
    _present(run, view)
    return 0


def _chosen(
    data: Path | None, source: str | None, target: str | None, pairs: int | None, seed: int
) -> Recipe:
    """The recipe on the text that is asked for, for all of its steps."""
    if data is None and (source, target) != (None, None):
        raise ConfigError(
            "--source-language and --target-language belong to --data: without files of your "
            "own, the demo translates English into German"
        )
    chosen = recipe.load("demo", () if data is None else CUSTOM)
    assert chosen.sentences is not None
    training = replace(chosen.experiment.training, seed=seed)
    most = chosen.sentences.pairs if pairs is None else pairs
    chosen = replace(
        chosen,
        sentences=replace(chosen.sentences, folder=data, pairs=most),
        experiment=replace(chosen.experiment, training=training),
    )
    return chosen if data is None else _translating(chosen, *choose_languages(data, source, target))


def _translating(chosen: Recipe, source: str, target: str) -> Recipe:
    """The recipe between other languages, by which its files are named."""

    def files(split: str) -> dict[str, Any]:
        return {"source": Path(f"{split}.{source}"), "target": Path(f"{split}.{target}")}

    return replace(
        chosen,
        source_language=source,
        target_language=target,
        texts=(RecipeText(name="train", licence="", **files("train")),),
        dev=(TextPair(**files("dev")),),
        tests=(TestSet(name="test", **files("test")),),
        limits="",
    )


def _present(run: "RecipeRun", view: "DemoView") -> None:
    """What came of it, what it looks at, where it lies, what to do next."""
    from transept.apps.recipes.run import lines
    from transept.apps.recipes.view import SampleTranslation
    from transept.apps.visualize.terminal import attend

    (test,) = run.recipe.tests
    sides = (lines(path(test)) for path in (run.sources, run.hypotheses, run.references))
    samples = list(map(SampleTranslation, *sides))
    transducer, examples = run.transducer(), _examples(run)
    ours = transducer.translate([source for source, _ in examples])
    typed = [
        SampleTranslation(source, one.text, target)
        for one, (source, target) in zip(ours, examples, strict=True)
    ]
    view.cut_short(run)
    chance = random.Random(0)
    chosen = sorted(samples, key=lambda _: chance.random())[:SHOWN]
    if typed:
        view.samples("Held-out sentences: training never put these words together", chosen)
        view.samples("Sentences that a person might type", typed)
    else:
        view.samples("Test sentences", chosen)
    view.results(run, samples)
    if (drawn := _most_telling(typed or samples)) is not None:
        view.attention(attend(transducer, drawn.source, drawn.ours))
    view.places(run)
    view.next_commands(run, (typed or samples)[0].source)


def _examples(run: "RecipeRun") -> list[tuple[str, str]]:
    """Sentences that a person might type; none if the demo is about custom files."""
    assert run.recipe.sentences is not None
    return built_in()["examples"] if run.recipe.sentences.folder is None else []


def _most_telling(samples: "list[SampleTranslation]") -> "SampleTranslation | None":
    """The one to draw: with words to look at, but not more than fit on a line."""
    said = [sample for sample in samples if sample.ours.strip()]
    return min(said, key=lambda sample: abs(len(sample.source.split()) - 9), default=None)
