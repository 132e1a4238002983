"""A translation that is sent while it grows."""

from collections.abc import AsyncIterator, Sequence

from transept.api.documents import Document
from transept.api.texts import Draft, Outputs, Translation, Unit
from transept.apps.serve.operations import Job, join_units

NO_DRAFT = Draft("", 0)


async def drafts_of(
    job: Job[Unit, Outputs], text: Document, units: Sequence[Sequence[Unit]]
) -> AsyncIterator[Draft]:
    """Yield a draft of the translation whenever it has grown, and at the end all of it.

    Args:
        job: The translation of all units.
        text: The document.
        units: The units of each of its sentences.
    """
    growing = _Growing(job, text.for_drafts(), units)
    async for _ in job.updates():
        yield growing.draft()
    yield growing.whole()


class _Growing:
    """A translated document of which only the first sentences are complete."""

    def __init__(
        self, job: Job[Unit, Outputs], text: Document, units: Sequence[Sequence[Unit]]
    ) -> None:
        self._job, self._text, self._units = job, text, units
        self._parts = text.with_words
        self._done: list[Translation] = []
        self._first = 0
        """The index of the first unit of the next sentence."""
        self._before = text.before_next([]) if self._parts else ""
        """The translation up to the next sentence."""

    def draft(self) -> Draft:
        """The complete sentences, and the draft of the next one."""
        self._complete()
        if len(self._done) == len(self._parts):
            return self.whole()
        before = self._before
        part, units = self._parts[len(self._done)], self._units[len(self._done)]
        if part.inside:
            # Markup can be placed only when the whole sentence is translated.
            return Draft(before, len(before))
        ready = self._outputs(self._job.n_ready)
        written = join_units(part.text, units[: len(ready)], ready, 1).text if ready else ""
        index, draft = self._job.draft or (-1, NO_DRAFT)
        if index != self._job.n_ready:
            draft = NO_DRAFT
        joined = Draft(written + draft.text, len(written) + draft.stable)
        return self._text.drafted(before, joined)

    def whole(self) -> Draft:
        """The complete translation."""
        self._complete()
        output = self._text.assemble(self._done, 1).outputs[0]
        return Draft(output.text, len(output.text), output.missing)

    def _complete(self) -> None:
        """Add the sentences whose units have all been translated since."""
        n_before = len(self._done)
        while len(self._done) < len(self._parts):
            part, units = self._parts[len(self._done)], self._units[len(self._done)]
            end = self._first + len(units)
            if end > self._job.n_ready:
                break
            self._done.append(join_units(part.text, units, self._outputs(end), 1))
            self._first = end
        if n_before < len(self._done) < len(self._parts):
            self._before = self._text.before_next(self._done)

    def _outputs(self, end: int) -> list[Outputs]:
        """The outputs of the next sentence's units before this index."""
        return [self._job.found[index] for index in range(self._first, end)]
