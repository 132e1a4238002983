"""A server in this process, over real sockets, with a small model of random weights."""

import dataclasses
import math
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import torch
import uvicorn

from transept import ModelConfig, Parser, Transducer, Transformer, config
from transept.apps.serve.app import create_app
from transept.apps.serve.models import AnyServed, Served, ServedParser
from transept.apps.serve.running import configured, listen
from transept.apps.serve.settings import ServerSettings
from transept.checkpoint import CONFIG, TOKENIZER, WEIGHTS, weights_of, write_directory
from transept.experiment import Experiment
from transept.tasks.parsing.vocabulary import vocabulary_of
from transept.text.imported import ImportedTokenizer
from transept.text.tokenizer import MODEL_FILE
from transept.text.training import train_tokenizer

WORDS = "one two three four five six seven eight nine ten the end is near so be it"
VOCABULARY = 300
KEY = "a-key-that-is-long-enough"
PATIENCE = 120.0
"""Seconds after which a test that waits for an event fails. No result depends on it."""
JSON = {"Content-Type": "application/json"}
POST = {
    "/translate": {"q": "one", "source": "en", "target": "de"},
    "/detect": {"q": "the end"},
    "/api/stream": {"q": "one"},
    "/api/nbest": {"q": "one"},
    "/api/score": {"q": "one", "translation": "two"},
    "/api/attention": {"q": "one"},
    "/api/words": {"q": "one"},
    "/api/choices": {"q": "one"},
    "/api/beam": {"q": "one"},
    "/api/parse": {"q": "one two"},
}


def small_transducer(seed: int = 1, kind: type[Transducer] = Transducer) -> Transducer:
    tokenizer = train_tokenizer([WORDS] * 50, vocab_size=VOCABULARY)
    torch.manual_seed(seed)
    config = ModelConfig(vocab_size=VOCABULARY, n_layers=2, d_model=16, d_ff=32, n_heads=2)
    return kind([Transformer(config)], tokenizer, tokenizer, max_source_length=40)


def small_parser() -> Parser:
    words = train_tokenizer([WORDS] * 50, vocab_size=VOCABULARY)
    symbols = vocabulary_of(["S", "NP", "VP"])
    torch.manual_seed(3)
    config = ModelConfig(
        vocab_size=symbols.vocab_size,
        source_vocab_size=VOCABULARY,
        tied_embeddings="two-way",
        n_layers=1,
        d_model=16,
        d_ff=32,
        n_heads=2,
    )
    return Parser([Transformer(config)], words, symbols, max_source_length=40)


def save_imported(directory: Path, tags: Sequence[str] = (), **about: str) -> Path:
    """A model directory as an import writes it, with random weights and these target languages."""
    ours, parts = train_tokenizer([WORDS] * 50, vocab_size=VOCABULARY), directory / "parts"
    ours.save(parts / "ours")
    entries = [*ours.pieces_of(range(VOCABULARY)), *(f">>{tag}<<" for tag in tags)]
    model = (parts / "ours" / MODEL_FILE).read_bytes()
    ImportedTokenizer(model, entries, ["<s>"]).save(parts / TOKENIZER)
    torch.manual_seed(5)
    shape = ModelConfig(vocab_size=len(entries), n_layers=2, d_model=16, d_ff=32, n_heads=2)
    write_directory(
        directory / "model",
        tensors={WEIGHTS: weights_of(Transformer(shape))},
        texts={CONFIG: config.dump(Experiment(model=shape))},
        folders={TOKENIZER: parts / TOKENIZER},
        about={"step": 0, **about},
    )
    return directory / "model"


def every_kind(transducer: Transducer, parser: Parser) -> list[AnyServed]:
    """Models for both directions, and a parser."""
    return [
        Served("en", "de", transducer),
        Served("de", "en", small_transducer(2)),
        ServedParser(parser),
    ]


class Gate:
    """A gate that opens never, a number of times, or always."""

    def __init__(self) -> None:
        self._left = 0.0
        self._changed = threading.Condition()

    def set(self, times: float = math.inf) -> None:
        """Allow this number of passes from now on."""
        with self._changed:
            self._left = times
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until a pass is allowed."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._left > 0, PATIENCE)
            self._left -= 1


class Held(Transducer):
    """Decodes a batch only when the gate allows it."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.let = Gate()
        self.begun: list[int] = []

    def translate_units(self, units: Any, **options: Any) -> Any:
        self.begun.append(len(units))
        self.let.wait()
        return super().translate_units(units, **options)

    def translate_feed(self, feed: Any, **options: Any) -> Any:
        def held(n: int) -> Any:
            if units := feed(n):
                self.begun.append(len(units))
                self.let.wait()
            return units

        return super().translate_feed(held, **options)


@contextmanager
def serving(
    served: Sequence[AnyServed],
    settings: ServerSettings,
    pivot: str | None = None,
    runs: Sequence[Path] = (),
) -> Iterator[httpx.Client]:
    """A client of a server that runs meanwhile.

    Time limits that a test does not set are long, so that a slow machine meets none of them.
    """
    usual = ServerSettings()
    if settings.deadline == usual.deadline:
        settings = dataclasses.replace(settings, deadline=PATIENCE)
    if settings.body_seconds == usual.body_seconds:
        settings = dataclasses.replace(settings, body_seconds=PATIENCE)
    server = uvicorn.Server(configured(create_app(settings, served, pivot, runs), settings))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = listening.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        try:
            # Not encrypted, so it need not read the certificates, which takes 20 ms.
            with httpx.Client(base_url=address, timeout=PATIENCE, verify=False) as client:
                yield client
        finally:
            # Also after a failed test: its thread would keep the whole run of pytest from ending.
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive()


def talk(client: httpx.Client, sent: bytes, patience: float = PATIENCE) -> bytes:
    """Everything received over a socket until the server closes it."""
    port = client.base_url.port
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        connection.sendall(sent)
        seen = b""
        while some := connection.recv(65536):
            seen += some
    return seen
