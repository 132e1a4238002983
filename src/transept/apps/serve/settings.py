"""The settings of a server. This module imports neither torch nor a web framework."""

import ipaddress
from dataclasses import asdict, dataclass
from pathlib import Path

from transept.config import Checks
from transept.decoding.config import BeamConfig
from transept.errors import Argument, ConfigError


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a server listens, and who may use it."""

    host: str = "127.0.0.1"
    """The address to listen on. By default only this machine can reach it."""
    port: int = 5000
    """The port to listen on; 0 takes a free one."""
    key_file: Path | None = None
    """A file of API keys, one per line: a key of at least 16 characters, or `sha256:` and the
    key's hash. Clients send a key as `Authorization: Bearer KEY` or as `api_key`."""
    no_key: bool = False
    """Let other machines use the server without keys, and answer under any host name."""
    origin: tuple[str, ...] = ()
    """The origin of a web page that may call this server: `https://example.org`."""


@dataclass(frozen=True, kw_only=True)
class Searching(BeamConfig):
    """How the server searches, unless a request says otherwise."""

    beam_limit: int = 21
    """The largest beam that a request may ask for."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a request may contain, and how much may wait."""

    body_limit: int = 1_000_000
    """The most bytes of a request's body."""
    char_limit: int = 20_000
    """The most characters of all texts of a request together."""
    sentence_limit: int = 500
    """The most sentences of a request, and the most texts, empty ones too."""
    queue_limit: int = 2_000
    """The most sentences that may wait. A request beyond that is told to come back later."""
    stream_limit: int = 16
    """The most translations that are streamed at a time."""
    weight_limit: int = 300_000
    """The most attention weights in an answer."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much is decoded at once, and how long the server waits."""

    batch_sentences: int = 1024
    """The most sentences, of all requests, that are decoded together; fewer with a wider beam."""
    batch_seconds: float = 1.0
    """Roughly the seconds that a batch takes. Requests for another model or beam wait for its end.
    Less answers short texts sooner beside long ones; more translates long texts faster."""
    gather_ms: float = 4.0
    """How many milliseconds the first sentence of a batch waits for others."""
    deadline: float = 60.0
    """Seconds after which a request that is not done is ended."""
    body_seconds: float = 10.0
    """Seconds within which a request's header must come, and again for its body."""
    grace: float = 30.0
    """Seconds to finish the requests that were accepted, when the server is told to stop."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Listening, Searching, Limits, Pace):
    """All settings of a server, checked."""

    @classmethod
    def of(cls, *parts: Listening | Searching | Limits | Pace) -> "ServerSettings":
        """Put the parts together. They are checked together, since some depend on each other."""
        return cls(**{name: value for part in parts for name, value in asdict(part).items()})

    def __post_init__(self) -> None:
        BeamConfig.__post_init__(self)
        checks = Checks(self)
        checks.that(0 <= self.port <= 65535, "port", "is not a port: 0 to 65535")
        checks.that(
            not (self.key_file and self.no_key), "no_key", "contradicts the key file: omit one"
        )
        checks.at_least(
            1, "body_limit", "char_limit", "sentence_limit", "stream_limit", "weight_limit",
            "batch_sentences",
        )  # fmt: skip
        checks.at_least(0, "gather_ms", "grace")
        for limit, of in (("beam_limit", "beam_size"), ("queue_limit", "sentence_limit")):
            least = getattr(self, of)
            checks.that(getattr(self, limit) >= least, limit, f"is less than {of}, {least:,}")
        for key in ("batch_seconds", "deadline", "body_seconds"):
            checks.that(getattr(self, key) > 0, key, "must be more than 0")
        for origin in self.origin:
            right = origin.startswith(("http://", "https://")) and not origin.endswith("/")
            checks.that(right, "origin", "must be like https://example.org, without a path")
        checks.done()
        if not (self.is_loopback or self.key_file or self.no_key):
            raise ConfigError(
                f"host: {self.host!r} can be reached from other machines: give ",
                Argument("key_file"), " with keys, or ", Argument("no_key"),
            )  # fmt: skip

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def local_names_only(self) -> bool:
        """Whether to answer only requests for a local host name.

        Otherwise a page on the web could use a server without keys: it would let its own host name
        point to this machine (DNS rebinding).
        """
        return self.is_loopback and self.key_file is None and not self.no_key
