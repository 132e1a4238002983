"""Where sentences wait that the search has no room for yet."""

from collections import deque
from collections.abc import Callable

from transept.api.engines.engine import Feed, Input


class Door:
    """Lets the sentences of a feed in, in their order: behind one that does not fit, all wait."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._waiting: deque[Input] = deque()
        self.n_entered = 0

    def first(self) -> Input | None:
        """Who enters next; None where nobody waits now."""
        if not self._waiting:
            self._waiting.extend(self._feed(1))
        return self._waiting[0] if self._waiting else None

    def ask(self) -> None:
        """Let the feed raise, if it wants to."""
        self._feed(0)

    def enter(self, n: int, fits: Callable[[Input], bool]) -> list[Input]:
        """The next ones, at most so many, up to the first that does not fit."""
        self._waiting.extend(self._feed(max(0, n - len(self._waiting))))
        entering: list[Input] = []
        while self._waiting and len(entering) < n and fits(self._waiting[0]):
            entering.append(self._waiting.popleft())
        self.n_entered += len(entering)
        return entering
