"""Translation of files, with the paths and messages of LibreTranslate.

A translated file is stored in a temporary directory. Its name cannot be guessed. It is removed
after some minutes, and when the server stops.
"""

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transept.api.config import Format
from transept.api.documents import FORMS, Document
from transept.api.texts import Translation
from transept.apps.serve.backend import Backend, seconds_left, set_deadline
from transept.apps.serve.batching import OverloadedError
from transept.apps.serve.envelope import (
    CLOSING,
    Refusal,
    answer,
    message_of,
    multipart_parts,
    read_body,
)
from transept.apps.serve.messages import FileAnswer, FileRequest
from transept.apps.serve.models import Served, guess
from transept.apps.serve.operations import Translate
from transept.documents.opening import SUFFIXES, OpenedFile, open_file
from transept.errors import DataError
from transept.runtime.storage import write_file
from transept.text.markup import text_of

DISABLED = "Files translation are disabled on this server."
"""LibreTranslate's message."""
MOST_AT_ONCE = 4
"""The maximum number of files that are read and translated at a time. The others are rejected."""
MOST_STORED = 500_000_000
"""The maximum size of all stored files. Beyond it, the oldest are removed."""
BODY_PATIENCE = 6
"""A file may take this many times as long to arrive as another body."""


class FileStore:
    """Translated files by their names."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._directory: TemporaryDirectory[str] | None = None
        self._sizes: dict[str, int] = {}

    async def add(self, name: str, content: bytes) -> str:
        """Store a file and return its new name."""
        name = f"{secrets.token_hex(16)}.{name}"
        await run_in_threadpool(write_file, self._path(name), content)
        self._sizes[name] = len(content)
        asyncio.get_running_loop().call_later(self._seconds, self._remove, name)
        for old in [*self._sizes][:-1]:
            if sum(self._sizes.values()) <= MOST_STORED:
                break
            self._remove(old)
        return name

    async def content(self, name: str) -> bytes | None:
        """The content of a file, or None if it does not exist any more."""
        if name not in self._sizes:
            return None
        try:
            return await run_in_threadpool(self._path(name).read_bytes)
        except FileNotFoundError:  # Its time ended between the two lines above.
            return None

    def close(self) -> None:
        """Remove all files."""
        self._sizes.clear()
        if self._directory is not None:
            self._directory.cleanup()

    def _path(self, name: str) -> Path:
        if self._directory is None:
            self._directory = TemporaryDirectory(prefix="transept-files-")
        return Path(self._directory.name) / name.partition(".")[0]

    def _remove(self, name: str) -> None:
        if self._sizes.pop(name, None) is not None:
            self._path(name).unlink(missing_ok=True)


@dataclass
class FileService:
    """The handlers of `/translate_file` and `/download_file`."""

    backend: Backend
    store: FileStore | None
    """None: files are not translated."""
    _n_running: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        settings = self.backend.settings
        # `Backend` then reports the deadline of files.
        self.backend = replace(
            self.backend, settings=replace(settings, deadline=settings.file_deadline)
        )

    @property
    def routes(self) -> list[Route]:
        """The routes of both paths."""
        return [
            Route("/translate_file", self._limited, methods=["POST"]),
            Route("/download_file/{name}", self.download, methods=["GET"]),
        ]

    async def _limited(self, request: Request) -> Response:
        if self.store is None:
            raise Refusal(403, DISABLED, CLOSING)
        self.backend.admit(request)
        if self._n_running >= MOST_AT_ONCE:
            raise Refusal(
                429, "Slowdown: too many files at a time", {"Retry-After": "10"} | CLOSING
            )
        self._n_running += 1
        try:
            return await self._translate(request, self.store)
        finally:
            self._n_running -= 1

    async def _translate(self, request: Request, store: FileStore) -> Response:
        """Translate a file and store the result."""
        settings = self.backend.settings
        message, name, content = await self._read(request)
        self.backend.keys.check(request, message)
        set_deadline(request, settings.deadline)
        opened = await run_in_threadpool(open_file, content, name)
        models = await self._route(message, opened)
        texts = await self._texts(request, opened, models)
        translated = await run_in_threadpool(opened.translated, texts, message.target)
        path = PurePosixPath(name)
        stored = await store.add(f"{path.stem}_{message.target}{path.suffix}", translated)
        return answer(FileAnswer(f"{request.base_url}download_file/{quote(stored)}"))

    async def _read(self, request: Request) -> tuple[FileRequest, str, bytes]:
        """The message, the name and the content of the file in a form."""
        settings = self.backend.settings
        seconds = BODY_PATIENCE * settings.body_seconds
        body = await read_body(request, settings.file_limit, seconds)
        kind, _, parameters = request.headers.get("content-type", "").partition(";")
        if kind.strip().lower() != "multipart/form-data":
            raise Refusal(415, f"{kind or 'the body'} is not supported; send multipart/form-data")
        try:
            parts = [*multipart_parts(body, parameters)]
            fields = [(part.name, part.value.decode()) for part in parts if part.file is None]
        except ValueError as error:
            raise Refusal(400, f"Invalid request: {error}") from None
        message = message_of(fields, FileRequest)
        file = next((part for part in parts if part.name == "file" and part.file is not None), None)
        if file is None:
            raise Refusal(400, "Invalid request: missing file parameter")
        if not file.file:
            raise Refusal(400, "Invalid request: empty file")
        name = _safe_name(file.file)
        if PurePosixPath(name).suffix.lower() not in SUFFIXES:
            raise Refusal(400, "Invalid request: file format not supported")
        return message, name, file.value

    async def _route(self, message: FileRequest, opened: OpenedFile) -> tuple[Served, ...]:
        """The models for a file. None if it already is in the target language."""
        models, source = self.backend.models, message.source
        for code, known in (
            (source, [*models.codes, "auto"]),
            (message.target, models.codes),
        ):
            if code not in known:
                raise Refusal(400, f"{code} is not supported")
        if source == "auto":
            form = FORMS[opened.markup]
            sample = "\n".join(text_of(text[:2000], form) for text in opened.texts[:50])
            best, *_ = await run_in_threadpool(guess, sample, models.codes)
            source = best.language
        return () if source == message.target else tuple(models.route(source, message.target))

    async def _texts(
        self, request: Request, opened: OpenedFile, models: Sequence[Served]
    ) -> list[str]:
        """The translation of each text, by one model or by two through the pivot."""
        texts = opened.texts
        for model in models:
            documents = await run_in_threadpool(_split, texts, opened.markup, model.source)
            operation = self.backend.translate(model, documents)
            sentences = [*dict.fromkeys(one for each in documents for one in each.sentences)]
            self._check_size(sentences)
            found = await self._translations(request, operation, sentences)
            texts = await run_in_threadpool(_assembled, documents, found)
        return texts

    def _check_size(self, sentences: Sequence[str]) -> None:
        size, limit = sum(map(len, sentences)), self.backend.settings.file_char_limit
        if size > limit:
            raise DataError(
                f"file ({size} characters) exceeds text limit ({limit}); split it into smaller ones"
            )

    async def _translations(
        self, request: Request, operation: Translate, sentences: Sequence[str]
    ) -> dict[str, Translation]:
        """Translate sentences, some at a time, so that a file does not fill the queue."""
        found: dict[str, Translation] = {}
        # A sentence may be split into several.
        size = max(1, self.backend.settings.sentence_limit // 2)
        for start in range(0, len(sentences), size):
            some = sentences[start : start + size]
            while some:
                try:
                    results = await self.backend.translations(request, operation, some)
                except OverloadedError as error:
                    if seconds_left(request) <= error.seconds:
                        raise
                    await asyncio.sleep(error.seconds)
                else:
                    found.update(zip(some, results, strict=True))
                    break
        return found

    async def download(self, request: Request) -> Response:
        """Return a translated file."""
        if self.store is None:
            raise Refusal(400, DISABLED)
        name = request.path_params["name"]
        content = await self.store.content(name)
        if content is None:
            raise Refusal(404, "the file does not exist any more; translate it again")
        file_name = quote(name.partition(".")[2])
        return Response(
            content,
            media_type="application/octet-stream",
            headers={"Content-Disposition": f"attachment; filename*=utf-8''{file_name}"},
        )


def _split(texts: Sequence[str], markup: Format, language: str) -> list[Document]:
    return [Document.of(text, markup, language) for text in texts]


def _assembled(documents: Sequence[Document], found: Mapping[str, Translation]) -> list[str]:
    return [one.assemble([found[text] for text in one.sentences], 1).text for one in documents]


def _safe_name(name: str) -> str:
    """The last part of a path, with letters, digits, `.`, `-` and `_`, and not too long."""
    last = PureWindowsPath(name).name
    path = PurePosixPath(re.sub(r"[^\w.-]+", "_", last))
    return f"{path.stem[:80]}{path.suffix[:20]}"


def file_paths(needs_key: bool) -> dict[str, Any]:
    """The OpenAPI description of both paths."""
    text = {"type": "string"}
    fields = {
        "file": text | {"format": "binary", "description": f"One of {', '.join(SUFFIXES)}."},
        "source": text | {"description": "The source language; `auto` detects it."},
        "target": text | {"description": "The target language."},
        "api_key": text,
    }
    form = {"type": "object", "properties": fields, "required": ["file", "source", "target"]}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}
    failed = {"default": {"description": "An error.", "content": error}}
    address = {"type": "object", "properties": {"translatedFileUrl": text}}
    upload: dict[str, Any] = {
        "summary": "Translate a file. Only its text changes.",
        "operationId": "translate_file",
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}},
        "responses": failed
        | {
            "200": {
                "description": "Its address.",
                "content": {"application/json": {"schema": address}},
            }
        },
    }
    if needs_key:
        upload["security"] = [{"key": []}]
    download = {
        "summary": "Download a translated file.",
        "operationId": "download_file",
        "parameters": [{"name": "name", "in": "path", "required": True, "schema": text}],
        "responses": failed
        | {"200": {"description": "The file.", "content": {"application/octet-stream": {}}}},
    }
    return {"/translate_file": {"post": upload}, "/download_file/{name}": {"get": download}}
