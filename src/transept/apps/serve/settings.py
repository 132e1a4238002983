"""The settings of a server. This module imports neither torch nor a web framework."""

import ipaddress
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from transept.config import Checks
from transept.decoding.config import BeamConfig
from transept.errors import Argument, ConfigError


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The models to serve, and the pairs of languages that they translate."""

    model: tuple[str, ...] = ()
    """The directory of a model, a run, a demo or a recipe, or the name of a bundled model. Default:
    all bundled models. May be repeated, one model for each language pair:
    `--model en-de=runs/base --model de-en=runs/back`. An imported model with several target
    languages serves a pair for each: `--model en=models/opus`. One model may be a parser."""
    source_language: str | None = None
    """The source language of the model, such as en, if neither the model nor --model specifies
    it."""
    target_language: str | None = None
    """The target language of the model. If the model has several, serve only this one."""
    pivot: str | None = None
    """If no model serves a pair, translate through this language: with `--pivot en` and models for
    de-en and en-fr, German is translated to English and then to French. Default: en for the bundled
    models, none for models given with --model."""
    device: str = "auto"
    """The device: cpu, cuda, cuda:1, or auto, which uses a GPU if there is one."""
    run: tuple[Path, ...] = ()
    """The directory of a training run whose metrics the dashboard of the web page follows. May be
    repeated."""


@dataclass(frozen=True, kw_only=True)
class Listening:
    """The address of a server, and access to it."""

    host: str = "127.0.0.1"
    """The address to listen on. By default only this machine can reach it."""
    port: int = 5000
    """The port to listen on. 0 selects a free port."""
    key_file: Path | None = None
    """A file of API keys, one per line: a key of at least 16 characters, or `sha256:` and the
    hash of the key. Clients send a key as `Authorization: Bearer KEY` or as `api_key`."""
    no_key: bool = False
    """Accept requests from other machines without a key, for any host name."""
    origin: tuple[str, ...] = ()
    """The origin of web pages that may call this server (CORS): `https://example.org`. `*` allows
    all web pages. May be repeated."""
    url_prefix: str = ""
    """The path under which to serve all paths, if a proxy does not remove it: `/translate`."""
    proxy: tuple[str, ...] = ()
    """The IP address of a proxy in front of the server. Its header X-Forwarded-For then names the
    client for --rate-limit. May be repeated."""
    no_files: bool = False
    """Do not translate files."""


@dataclass(frozen=True, kw_only=True)
class Searching(BeamConfig):
    """The default search options. A request may override them."""

    beam_limit: int = 21
    """Maximum beam size of a request."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on requests and on the queue."""

    body_limit: int = 1_000_000
    """Maximum size of a request body in bytes."""
    char_limit: int = 20_000
    """Maximum total characters of the texts of a request."""
    sentence_limit: int = 500
    """Maximum sentences per request, and maximum texts, including empty ones."""
    queue_limit: int = 2_000
    """Maximum queued sentences. Requests beyond that are rejected with status 429."""
    stream_limit: int = 16
    """Maximum concurrent streams."""
    rate_limit: int = 0
    """Maximum requests of a client's address per minute, without those for pages and for lists.
    0: no limit."""
    file_limit: int = 20_000_000
    """Maximum size of a file to translate in bytes."""
    file_char_limit: int = 1_000_000
    """Maximum characters of the text of a file."""
    weight_limit: int = 300_000
    """Maximum attention weights in a response."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Batch sizes and timeouts."""

    batch_sentences: int = 1024
    """Maximum sentences per batch, over all requests. A wider beam allows fewer."""
    batch_seconds: float = 1.0
    """Target duration of a batch in seconds. Requests for another model or beam wait for its end.
    Lower values reduce latency for short texts; higher values raise throughput for long ones."""
    gather_ms: float = 4.0
    """Milliseconds that a batch waits for another sentence, if clients may send one."""
    deadline: float = 60.0
    """Seconds after which an unfinished request is aborted."""
    file_deadline: float = 600.0
    """Seconds after which an unfinished translation of a file is aborted."""
    file_minutes: float = 30.0
    """Minutes for which a translated file can be downloaded."""
    body_seconds: float = 10.0
    """Seconds within which a request's header must arrive, and then its body."""
    grace: float = 30.0
    """Seconds to finish accepted requests after a signal to stop."""


@dataclass(frozen=True, kw_only=True)
class ServerSettings(Listening, Searching, Limits, Pace):
    """All settings of a server, validated."""

    @classmethod
    def of(cls, *parts: Listening | Searching | Limits | Pace) -> "ServerSettings":
        """Combine the parts. They are validated together because some depend on each other."""
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
            "batch_sentences", "file_limit", "file_char_limit",
        )  # fmt: skip
        checks.at_least(0, "gather_ms", "grace", "rate_limit")
        for limit, of in (("beam_limit", "beam_size"), ("queue_limit", "sentence_limit")):
            least = getattr(self, of)
            checks.that(getattr(self, limit) >= least, limit, f"is less than {of}, {least:,}")
        for key in ("batch_seconds", "deadline", "file_deadline", "file_minutes", "body_seconds"):
            checks.that(getattr(self, key) > 0, key, "must be more than 0")
        is_path = re.fullmatch(r"((/[\w.~-]+)+)?", self.url_prefix, re.ASCII)
        checks.that(bool(is_path), "url_prefix", "must be a path like /translate")
        where = "must be like https://example.org, without a path, or *"
        checks.each(lambda one: one == "*" or _is_origin(one), "origin", where)
        checks.each(lambda one: _address(one) is not None, "proxy", "is not an IP address")
        checks.done()
        if not (self.is_loopback or self.key_file or self.no_key):
            raise ConfigError(
                f"host: {self.host!r} can be reached from other machines: give ",
                Argument("key_file"), " with keys, or ", Argument("no_key"),
            )  # fmt: skip

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        address = _address(self.host)
        return self.host == "localhost" if address is None else address.is_loopback

    @property
    def local_names_only(self) -> bool:
        """Whether to answer only requests for a local host name.

        Otherwise a web page could use a server without keys by resolving its own host name to this
        machine (DNS rebinding).
        """
        return self.is_loopback and self.key_file is None and not self.no_key


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_origin(text: str) -> bool:
    return re.fullmatch(r"https?://[^/\s]+", text) is not None
