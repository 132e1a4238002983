"""The fourth stage: the test sets are translated, section 6.1."""

import time
from dataclasses import asdict
from typing import Any

from transept import config
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import lines
from transept.apps.recipes.stages.stage import Stage, Watchers
from transept.text.files import write_sentences
from transept.wording import counted


class Decode(Stage):
    """Translate the test sets; a sentence that is in two of them, once."""

    name = "decode"

    def inputs(self) -> Table:
        """The model, the sentences, and how they are searched."""
        run = self.run
        return {
            "weights": run.weights,
            "sources": run.hashes(run.sources),
            "search": config.as_table(run.recipe.search),
        }

    def carry_out(self, watch: Watchers) -> Table:
        """Search, and write the translations in the order of the test sets."""
        run = self.run
        sources = {test: lines(run.sources(test)) for test in run.tests}
        unique = list(dict.fromkeys(line for test in sources.values() for line in test))
        transducer = run.work.transducer(run.recipe.average.last)
        begin = time.monotonic()
        search: dict[str, Any] = asdict(run.recipe.search)
        # Each line is one sentence of the test set, and has one line of translation.
        found = transducer.translate(
            unique, split=False, too_long="split", watch=watch.translating, **search
        )
        seconds = time.monotonic() - begin
        texts = [one.text.replace("\n", " ") for one in found]
        translations = dict(zip(unique, texts, strict=True))
        for test, sentences in sources.items():
            path = run.hypotheses(test)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_sentences(path, [translations[line] for line in sentences])
        engine = transducer.engine.name
        return {"search_seconds": seconds, "engine": engine, "sentences": len(unique)}

    def summary(self, record: Table) -> str:
        """How much was translated."""
        sentences, run = record["results"]["sentences"], self.run
        beam = run.recipe.search.beam_size
        where = counted(len(run.tests), "test set")
        return f"{counted(sentences, 'sentence')} of {where}, beam {beam}"

    def is_whole(self) -> bool:
        """Whether every translation is there."""
        return all(self.run.hypotheses(test).exists() for test in self.run.tests)
