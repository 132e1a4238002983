"""`transept serve` as a process: start, signals, end."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.integration.workshop import run

import transept

BODY = {"q": "one two three", "source": "en", "target": "de"}


@contextmanager
def server(
    bundle: Path | None, log: Path, *options: str, begun: Callable[[int], None] = lambda pid: None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "transept", "serve", "--port", "0", *options]
    command += [] if bundle is None else ["--model", f"en-de={bundle}"]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        begun(process.pid)
        try:
            first = process.stdout.readline()
            address = re.fullmatch(r"Serving at (http://127.*:\d+)\n", first)
            assert address, f"{first!r} {log.read_text()}"
            yield process, address[1]
        finally:
            process.kill()


def wait_for(log: Path, text: str) -> None:
    for _ in range(2400):
        if text in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{text!r} is not in {log.read_text()!r}")


def test_server_reloads_and_finishes_accepted_requests(trained: Path, tmp_path: Path) -> None:
    bundle, log = tmp_path / "bundle", tmp_path / "log"
    shutil.copytree(trained / "average-3", bundle)
    expected = transept.load(bundle).translate(BODY["q"]).text
    with server(bundle, log) as (process, address), httpx.Client(base_url=address) as client:
        assert client.post("/translate", json=BODY).json() == {"translatedText": expected}
        os.kill(process.pid, signal.SIGHUP)
        wait_for(log, "en-de: reloaded")

        weights = bundle / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
        os.kill(process.pid, signal.SIGHUP)
        wait_for(log, "en-de: not reloaded, still serving the old model")
        assert client.post("/translate", json=BODY).json() == {"translatedText": expected}

        answers: list[httpx.Response] = []
        many = BODY | {"q": ["one two three four five six seven"] * 400}
        asking = threading.Thread(
            target=lambda: answers.append(
                httpx.post(f"{address}/translate", json=many, timeout=120)
            )
        )
        asking.start()
        wait_for_queue(client)
        process.send_signal(signal.SIGTERM)
        asking.join(120)
        assert process.wait(120) == 0
        (answer,) = answers
        assert len(answer.json()["translatedText"]) == 400
    assert "two three" not in log.read_text()


def test_default_model_of_translate_is_served_first(tmp_path: Path) -> None:
    """Requests without languages use the default model."""
    sentence = "I would like a cup of tea."
    with server(None, tmp_path / "log") as (_, address):
        answer = httpx.post(f"{address}/api/nbest", json={"q": sentence}, timeout=120).json()
        assert (answer["source"], answer["target"]) == ("en", "de")
        assert answer["outputs"][0]["text"] == "Ich hätte gerne eine Tasse Tee."
        back = {"q": "Wo wohnst du?", "source": "de", "target": "en"}
        answer = httpx.post(f"{address}/translate", json=back, timeout=120).json()
        assert answer["translatedText"] == "Where do you live?"


@pytest.mark.parametrize(
    ("options", "signals", "said"),
    [
        (["--grace", "0"], [signal.SIGTERM], "0 s after the signal to stop; --grace allows"),
        pytest.param(
            [],
            [signal.SIGINT, signal.SIGINT],
            "at the second signal to stop",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_unfinished_requests_fail_after_the_grace_period(
    trained: Path, tmp_path: Path, options: list[str], signals: list[signal.Signals], said: str
) -> None:
    log, text = tmp_path / "log", "one two three four five six seven. \n" * 400
    with server(trained, log, *options) as (process, address), ThreadPoolExecutor(2) as pool:
        asking = pool.submit(
            httpx.post, f"{address}/translate", json=BODY | {"q": text}, timeout=120
        )
        watching = pool.submit(httpx.post, f"{address}/api/stream", json={"q": text}, timeout=120)
        with httpx.Client(base_url=address) as client:
            wait_for_queue(client)
            while "transept_streams 1.0" not in client.get("/metrics").text:
                time.sleep(0.01)
        slow = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
        slow.sendall(b"POST /detect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        # The server has read what came before it answers a later connection.
        assert httpx.get(f"{address}/metrics", timeout=120).status_code == 200
        for number in signals:
            process.send_signal(number)
            wait_for_delivery(process, number)
        assert asking.result().status_code == 503
        assert "stopped before this request was done" in asking.result().json()["error"]
        assert watching.result().text.endswith('try again later"}\n\n')
        with slow:
            assert slow.recv(1000).startswith(b"HTTP/1.1 503")
        assert process.wait(120) == 1
    assert f"3 requests were aborted {said}" in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_sighup_during_startup_reloads_the_models(trained: Path, tmp_path: Path) -> None:
    def hang_up(pid: int) -> None:
        caught = 0
        while not caught & 1 << signal.SIGHUP - 1:  # Python itself heeds no SIGHUP
            status = Path(f"/proc/{pid}/status").read_text()
            caught = int(status.partition("SigCgt:")[2].split()[0], 16)
            time.sleep(0.01)
        os.kill(pid, signal.SIGHUP)

    log = tmp_path / "log"
    with server(trained, log, begun=hang_up) as (_, address):
        wait_for(log, "en-de: reloaded")
        assert httpx.get(f"{address}/health").status_code == 200


def test_bundled_models_are_served_with_english_as_the_pivot(tmp_path: Path) -> None:
    with server(None, tmp_path / "log") as (process, address):
        assert process.stdout is not None
        models = [process.stdout.readline() for _ in range(4)]
        assert models[0].startswith("  English to German (engine: ")
        assert process.stdout.readline() == "Other pairs are translated through English.\n"
        body = {"q": "Wo ist der Bahnhof?", "source": "de", "target": "fr"}
        answer = httpx.post(f"{address}/translate", json=body, timeout=120).json()
    assert "gare" in answer["translatedText"]


def wait_for_delivery(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Wait until a signal is delivered: two pending signals of a kind count as one."""
    pending = 1 << number - 1
    while process.poll() is None and pending & 1 << number - 1:
        status = Path(f"/proc/{process.pid}/status").read_text()
        pending = int(status.partition("ShdPnd:")[2].split()[0], 16)
        time.sleep(0.01)


def wait_for_queue(client: httpx.Client) -> None:
    for _ in range(12_000):
        figures = client.get("/metrics").text
        if "transept_queue_sentences 0.0" not in figures:
            return
        time.sleep(0.01)
    raise AssertionError("nothing waits")


def test_other_hosts_require_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--host", "0.0.0.0") == 2
    error = capsys.readouterr().err
    assert "host: '0.0.0.0' can be reached from other machines: give --key-file" in error


def test_invalid_models_and_keys_are_rejected(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("serve", "--model", trained) == 2
    assert "does not specify its languages: give them" in capsys.readouterr().err
    assert run("serve", "--model", trained, "--source-language", "EN!") == 2
    assert "'EN!' is not a language code" in capsys.readouterr().err
    assert run("serve", "--model", f"en-de={trained}", "--model", f"en-de={trained}") == 2
    assert "two models translate en-de" in capsys.readouterr().err
    assert run("serve", "--model", f"en-de={trained}", "--key-file", tmp_path / "none") == 2
    assert "--key-file: cannot be read" in capsys.readouterr().err


def test_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        # Before the model is loaded, which may take a while: this one is not even there.
        assert run("serve", "--model", "en-de=nowhere", "--port", port) == 1
    said = capsys.readouterr().err
    assert f"port {port}: cannot listen" in said
    assert "try another --port" in said


def test_foreign_address_is_rejected(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = ["--host", "192.0.2.1", "--no-key", "--port", "0"]
    assert run("serve", "--model", f"en-de={trained}", *elsewhere) == 1
    assert "--host must be an address of this machine" in capsys.readouterr().err
