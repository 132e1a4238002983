"""`transept demo`: run the recipe `demo`, then print examples and an attention map.

The stages and the work directory are those of every recipe. The command adds options for the text,
the seed and the number of steps, and prints the results.
"""

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from transept.apps.recipes import recipe
from transept.apps.recipes.command import run_stages
from transept.apps.recipes.recipe import Recipe, RecipeText, TestSet, TextPair
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
"""Overrides for custom files: a model that learns something in 1,200 steps. Custom corpora are
small and are seen for many epochs, so dropout and label smoothing are the paper's. More than a
million pairs cannot be read within minutes."""
SHOWN: Final = 8
"""The number of randomly chosen test sentences that are shown."""


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
    """Train a small translation model and show its output.

    Learns a vocabulary from built-in English and German sentences, trains a Transformer, averages
    its last checkpoints and translates held-out sentences. It works offline and without a GPU.
    Training takes about four minutes on two idle cores, and longer on a slow or busy machine. The
    progress display shows the remaining time. When stopped with Ctrl-C or SIGTERM, the command ends
    with exit code 75 and prints no translations. Run the same command to resume. Completed stages
    are skipped.

    Args:
        output: The directory for all output.
        data: A folder with custom files, one sentence per line, such as train.en and train.de, also
            compressed as .gz, .xz or .zst. If the folder has no dev or test files, sentences of
            train are held out for them.
        source_language: The suffix of the source files. Default: en if there is such a file,
            otherwise the suffix of a file found.
        target_language: The suffix of the target files.
        pairs: Train on at most this number of sentence pairs. Default: all 80,000 built-in pairs,
            or a million custom pairs.
        steps: Train for this number of steps. Default: 2,320 on the built-in sentences, 1,200 on
            custom files. With fewer steps, the results are marked as incomplete. A later command
            with more steps, or without this option, resumes the training.
        seed: Seed of the initial weights, the order of the training pairs, and the choice of
            held-out sentences of custom files.
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
    if not run_stages(run, whole.stages, view):
        return RESUMABLE
    _present(run, view)
    return 0


def _chosen(
    data: Path | None, source: str | None, target: str | None, pairs: int | None, seed: int
) -> Recipe:
    """The recipe for the requested text, with its full number of steps."""
    if data is None and (source, target) != (None, None):
        raise ConfigError(
            "--source-language and --target-language require --data: without custom files, the "
            "demo translates English into German"
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
    """The recipe for other languages, which are also the suffixes of its files."""

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
    """Print translations, scores, an attention map, the output files and next commands."""
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
    view.warn_if_incomplete(run)
    chance = random.Random(0)
    chosen = sorted(samples, key=lambda _: chance.random())[:SHOWN]
    if typed:
        view.samples("Held-out sentences (word combinations not seen in training)", chosen)
        view.samples("Sentences that a user might type", typed)
    else:
        view.samples("Test sentences", chosen)
    view.results(run, samples)
    if (drawn := _sample_to_draw(typed or samples)) is not None:
        view.attention(attend(transducer, drawn.source, drawn.ours))
    view.print_output_files(run)
    view.next_commands(run, (typed or samples)[0].source)


def _examples(run: "RecipeRun") -> list[tuple[str, str]]:
    """Sentences that a user might type. Empty for custom files."""
    assert run.recipe.sentences is not None
    return built_in()["examples"] if run.recipe.sentences.folder is None else []


def _sample_to_draw(samples: "list[SampleTranslation]") -> "SampleTranslation | None":
    """The sample whose attention to draw: about nine words, which fit on a line."""
    translated = [sample for sample in samples if sample.ours.strip()]
    return min(translated, key=lambda sample: abs(len(sample.source.split()) - 9), default=None)
