"""The queue of sentences that wait until the search has room for them."""

from collections import deque
from collections.abc import Callable

from transept.decoding.engine import Feed, Input


class AdmissionQueue:
    """Admits the sentences of a feed in their order: behind one that does not fit, all wait."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._waiting: deque[Input] = deque()
        self.n_admitted = 0

    def first(self) -> Input | None:
        """The sentence that is admitted next; None if none waits now."""
        if not self._waiting:
            self._waiting.extend(self._feed(1))
        return self._waiting[0] if self._waiting else None

    def poll(self) -> None:
        """Ask the feed for no sentence, so that it can raise an exception to stop the search."""
        self._feed(0)

    def admit(self, n: int, fits: Callable[[Input], bool]) -> list[Input]:
        """Take the next sentences off the queue: at most n, up to the first that does not fit."""
        self._waiting.extend(self._feed(max(0, n - len(self._waiting))))
        admitted: list[Input] = []
        while self._waiting and len(admitted) < n and fits(self._waiting[0]):
            admitted.append(self._waiting.popleft())
        self.n_admitted += len(admitted)
        return admitted
