"""What can be set about a server. No torch and no web framework here."""

import ipaddress
from dataclasses import asdict, dataclass
from pathlib import Path

from transept.config import Checks


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a server listens, and whom it answers."""

    host: str = "127.0.0.1"
    """The address to listen on. The default is reached from this machine alone."""
    port: int = 5000
    """The port to listen on; 0 takes a free one."""
    key_file: Path | None = None
    """A file of API keys, one a line, each at least 16 characters long or `sha256:` and the
    key's hash. Clients send one as `Authorization: Bearer KEY` or as `api_key`."""
    no_key: bool = False
    """Listen beyond this machine without keys, and under any host name."""
    origin: tuple[str, ...] = ()
    """A web page's origin that browsers may call this server from: `https://example.org`."""


@dataclass(frozen=True, kw_only=True)
class Searching:
    """How it searches."""

    beam_size: int = 4
    """Hypotheses kept alive where a request does not say; 1 is greedy search."""
    length_penalty: float = 0.6
    """The α of Wu et al. where a request does not say."""
    beam_limit: int = 21
    """The largest beam that a request may ask for."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much it takes on."""

    body_limit: int = 1_000_000
    """Bytes of a request's body, at most."""
    char_limit: int = 20_000
    """Characters of a request's texts together, at most."""
    sentence_limit: int = 500
    """Sentences of a request, at most."""
    queue_limit: int = 2_000
    """Sentences that wait, at most; what would be more is told to come back later."""
    stream_limit: int = 16
    """Translations that are streamed at a time, at most."""
    weight_limit: int = 300_000
    """Attention weights in an answer, at most."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much it does at once, and for how long it waits."""

    batch_sentences: int = 1024
    """Sentences of all requests that are decoded together, at most; fewer with a wider beam."""
    batch_seconds: float = 1.0
    """Seconds for what is decoded together, about: who asks for something else waits for its end.
    Less answers short texts sooner beside long ones, more translates long ones faster."""
    gather_ms: float = 4.0
    """How long the first sentence waits for others to join it."""
    deadline: float = 60.0
    """Seconds after which a request is given up."""
    body_seconds: float = 10.0
    """Seconds within which a request's header, and then its body, must have come."""
    grace: float = 30.0
    """Seconds for finishing what was begun when the server is told to stop."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Listening, Searching, Limits, Pace):
    """All that can be set about a server, checked."""

    @classmethod
    def of(cls, *parts: Listening | Searching | Limits | Pace) -> "ServerSettings":
        """The settings of all parts, which may depend on each other."""
        return cls(**{name: value for part in parts for name, value in asdict(part).items()})

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(0 <= self.port <= 65535, "port", "is no port: 0 to 65535")
        checks.that(
            self.is_loopback or self.key_file is not None or self.no_key,
            "host",
            "can be reached from other machines: give --key-file FILE, or say --no-key",
        )
        checks.that(
            not (self.key_file and self.no_key), "no_key", "contradicts key_file: leave one out"
        )
        checks.at_least(
            1, "beam_size", "body_limit", "char_limit", "sentence_limit", "stream_limit",
            "weight_limit", "batch_sentences",
        )  # fmt: skip
        checks.at_least(0, "length_penalty", "gather_ms", "grace")
        for limit, of in (("beam_limit", "beam_size"), ("queue_limit", "sentence_limit")):
            least = getattr(self, of)
            checks.that(getattr(self, limit) >= least, limit, f"is less than {of}, {least:,}")
        for key in ("batch_seconds", "deadline", "body_seconds"):
            checks.that(getattr(self, key) > 0, key, "must be more than 0")
        for origin in self.origin:
            right = origin.startswith(("http://", "https://")) and not origin.endswith("/")
            checks.that(right, "origin", "must be like https://example.org, without a path")
        checks.done()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def local_names_only(self) -> bool:
        """Whether to answer only to this machine's own names.

        Without keys, a page on the web could else reach the server by a name of its own that it
        lets point here.
        """
        return self.is_loopback and self.key_file is None and not self.no_key
