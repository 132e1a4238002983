"""Translation of files by the server, as in LibreTranslate."""

import asyncio
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import KEY, Held, serving, small_transducer
from tests.integration.test_server_load import wait_until
from tests.random_networks import any_output_accepted
from tests.unit.documents.builders import word, writer, zipped

from transept import Transducer
from transept.apps.serve import files
from transept.apps.serve.files import FileStore
from transept.apps.serve.models import AnyServed, Served
from transept.apps.serve.settings import ServerSettings
from transept.documents.opening import SUFFIXES, open_file

BODY = "".join(f"<w:p><w:r><w:t>the {one} is near.</w:t></w:r></w:p>" for one in ("end", "ten"))
PAIR = {"source": "en", "target": "de"}


@pytest.fixture(autouse=True, scope="module")
def random_networks() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.fixture(scope="module")
def model() -> Transducer:
    return small_transducer()


@pytest.fixture(scope="module")
def served(model: Transducer) -> list[AnyServed]:
    return [Served("en", "de", model), Served("de", "en", small_transducer(2))]


@pytest.fixture(scope="module")
def client(served: list[AnyServed]) -> Iterator[httpx.Client]:
    # Files have more sentences than other requests may have.
    with serving(served, ServerSettings(sentence_limit=2)) as client:
        yield client


def sent(client: httpx.Client, data: bytes, name: str, **fields: Any) -> httpx.Response:
    return client.post("/translate_file", files={"file": (name, data)}, data=PAIR | fields)


def downloaded(client: httpx.Client, answer: httpx.Response) -> httpx.Response:
    assert answer.status_code == 200, answer.text
    (address,) = answer.json().values()
    assert [*answer.json()] == ["translatedFileUrl"]
    assert address.startswith(str(client.base_url))
    return client.get(address)


def test_translated_file_equals_that_of_the_api(
    client: httpx.Client, model: Transducer, tmp_path: Path
) -> None:
    for name, data in {
        "a.docx": word(BODY),
        "a.odt": writer("<text:p>one <text:span>two</text:span></text:p>"),
        "a.txt": b"one two.\nThree four.\nfive\n\nsix\n",
    }.items():
        (tmp_path / name).write_bytes(data)
        model.translate_file(tmp_path / name, tmp_path / f"x{name}", source_language="en")
        file = downloaded(client, sent(client, data, name))
        assert file.content == (tmp_path / f"x{name}").read_bytes()


def test_download_is_an_attachment_with_a_name_that_cannot_be_guessed(client: httpx.Client) -> None:
    answers = [sent(client, b"one", "../My \u00fc report.TXT") for _ in range(2)]
    addresses = [one.json()["translatedFileUrl"] for one in answers]
    assert addresses[0] != addresses[1]
    assert re.search(r"/download_file/[0-9a-f]{32}\.My_%C3%BC_report_de\.TXT$", addresses[0])
    file = client.get(addresses[0])
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"].startswith("attachment; filename*=utf-8''My_%C3%BC")
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in file.headers["content-security-policy"]


def test_source_language_can_be_detected(client: httpx.Client) -> None:
    english = b"The end is near, and so we are waiting for it."
    for source in ("auto", "en"):
        file = downloaded(client, sent(client, english, "a.txt", source=source))
        assert file.content != english
    german = b"Das Ende ist nahe, und deshalb warten wir darauf."
    assert downloaded(client, sent(client, german, "a.txt", source="auto")).content == german


def test_pivot_translates_a_file_twice(served: list[AnyServed]) -> None:
    models = [served[1], Served("en", "fr", small_transducer(3))]
    with serving(models, ServerSettings(), pivot="en") as client:
        data = word(BODY)
        english = downloaded(client, sent(client, data, "a.docx", source="de", target="en"))
        french = downloaded(client, sent(client, english.content, "a.docx", target="fr"))
        both = downloaded(client, sent(client, data, "a.docx", source="de", target="fr"))
        assert both.content == french.content


@pytest.mark.parametrize(
    ("fields", "name", "data", "why"),
    [
        ({"source": "xx"}, "a.txt", b"one", "xx is not supported"),
        ({"target": "xx"}, "a.txt", b"one", "xx is not supported"),
        ({}, "a.pdf", b"one", "Invalid request: file format not supported"),
        ({}, "a", b"one", "Invalid request: file format not supported"),
        ({}, "a.docx", b"one", "Invalid request: a.docx: is damaged"),
        ({}, "a.docx", zipped({"../x": ""}), "is outside of the archive"),
        ({}, "a.docx", zipped({"x": bytes(9_000_000)}), "compressed too well"),
        ({}, "a.xliff", b'<!DOCTYPE a [<!ENTITY b "c">]><a/>', "declares an entity"),
        ({}, "a.txt", b"\xff", "is not UTF-8"),
    ],
)
def test_wrong_files_are_rejected(
    client: httpx.Client, fields: dict[str, str], name: str, data: bytes, why: str
) -> None:
    answer = sent(client, data, name, **fields)
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_missing_fields_are_named_as_in_libretranslate(client: httpx.Client) -> None:
    file = {"file": ("a.txt", b"one")}
    for given, why in (
        ({"data": PAIR, "files": {"other": ("a.txt", b"")}}, "missing file parameter"),
        ({"data": {"source": "en"}, "files": file}, "missing target parameter"),
        ({"data": {"target": "de"}, "files": file}, "missing source parameter"),
    ):
        answer = client.post("/translate_file", **given)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["error"]) == (400, f"Invalid request: {why}")
    assert client.post("/translate_file", json=PAIR).status_code == 415
    form = {"Content-Type": "multipart/form-data"}
    assert client.post("/translate_file", content=b"x", headers=form).status_code == 400
    for name in ("x", "..%2f..%2fetc%2fpasswd", "0" * 32 + ".a_de.txt"):
        assert client.get(f"/download_file/{name}").status_code == 404


def test_switched_off_server_answers_as_libretranslate(served: list[AnyServed]) -> None:
    disabled = {"error": "Files translation are disabled on this server."}
    with serving(served, ServerSettings(no_files=True)) as client:
        answer = sent(client, b"one", "a.txt")
        assert (answer.status_code, answer.json()) == (403, disabled)
        answer = client.get("/download_file/x")
        assert (answer.status_code, answer.json()) == (400, disabled)
        said = client.get("/frontend/settings").json()
        assert (said["filesTranslation"], said["supportedFilesFormat"]) == (False, [])
        assert "/translate_file" not in client.get("/openapi.json").json()["paths"]


def test_settings_and_description_list_the_formats(client: httpx.Client) -> None:
    said = client.get("/frontend/settings").json()
    assert (said["filesTranslation"], said["supportedFilesFormat"]) == (True, [*SUFFIXES])
    described = client.get("/openapi.json").json()["paths"]
    assert {*described} >= {"/translate_file", "/download_file/{name}"}


def test_key_is_required_to_translate_and_not_to_download(
    served: list[AnyServed], tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(KEY)
    with serving(served, ServerSettings(key_file=tmp_path / "keys")) as client:
        for fields, status in (({}, 403), ({"api_key": "wrong"}, 403), ({"api_key": KEY}, 200)):
            answer = sent(client, b"one", "a.txt", **fields)
            assert answer.status_code == status
        assert downloaded(client, answer).status_code == 200


def test_large_files_are_rejected(served: list[AnyServed]) -> None:
    with serving(served, ServerSettings(file_limit=10_000, file_char_limit=20)) as client:
        answer = sent(client, bytes(10_001), "a.txt")
        assert answer.status_code == 413
        answer = sent(client, b"one two three four five six", "a.txt")
        assert answer.status_code == 400
        assert "exceeds text limit (20)" in answer.json()["error"]


def test_files_are_limited_in_number_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held = small_transducer(kind=Held)
    assert isinstance(held, Held)
    monkeypatch.setattr(files, "MOST_AT_ONCE", 0)
    with serving([Served("en", "de", held)], ServerSettings(file_deadline=0.2)) as client:
        answer = sent(client, b"one", "a.txt")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
        monkeypatch.setattr(files, "MOST_AT_ONCE", 1)
        answer = sent(client, b"one", "a.txt")
        assert answer.status_code == 503
        assert "took longer than 0.2 s" in answer.json()["error"]
        held.let.set()


def test_file_is_removed_after_its_time(served: list[AnyServed]) -> None:
    with serving(served, ServerSettings(file_minutes=0.2 / 60)) as client:
        address = sent(client, b"one", "a.txt").json()["translatedFileUrl"]
        wait_until(lambda: client.get(address).status_code == 404)


def test_store_removes_the_oldest_files_and_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(files, "MOST_STORED", 10)

    async def contents() -> list[bytes | None]:
        names = [await store.add("a.txt", bytes(4)) for _ in range(3)]
        return [await store.content(name) for name in names]

    store = FileStore(60)
    assert asyncio.run(contents()) == [None, bytes(4), bytes(4)]
    assert len([*tmp_path.glob("transept-files-*/*")]) == 2
    store.close()
    assert not [*tmp_path.iterdir()]


def test_file_removed_while_it_is_asked_for_is_missing(
    served: list[AnyServed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with serving(served, ServerSettings()) as client:
        address = sent(client, b"one", "a.txt").json()["translatedFileUrl"]
        [path] = tmp_path.glob("transept-files-*/*")
        path.unlink()
        assert client.get(address).status_code == 404


def test_file_in_the_target_language_is_returned_unchanged(client: httpx.Client) -> None:
    data = word(BODY)
    assert open_file(data, "a.docx").texts
    assert downloaded(client, sent(client, data, "a.docx", target="en")).content == data
