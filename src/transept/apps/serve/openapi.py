"""The description of the server for programs: an OpenAPI 3.1 document from the table of paths."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from transept.apps.serve.messages import ErrorAnswer
from transept.apps.serve.routes import EVENTS, JSON, Entry
from transept.version import __version__

Languages = dict[Literal["source", "target"], list[str]]
REFERENCE = "#/components/schemas/{name}"
OF_A_BODY = (400, 408, 413, 415)
GIVEN = "The result."
EVENTS_SAID = (
    "Events: `part` with `text`, of which all joined are the translation, and `tail`, which would "
    "follow at the moment and may change; at the end `done` with the whole `text`, or `error`."
)
"""The events are described in words because a schema describes one message, not a stream."""


def document(
    entries: Sequence[Entry], languages: Languages, beam_limit: int, *, key_required: bool
) -> dict[str, Any]:
    """The OpenAPI document of all paths that have a message in their answer.

    Args:
        entries: The table of paths.
        languages: The codes of the languages that models read, and of those that they write.
        beam_limit: The widest beam that a request may have.
        key_required: Whether clients need a key.
    """
    described = [entry for entry in entries if entry.gives is not None]
    types = [
        ErrorAnswer,
        *(kind for entry in described for kind in (entry.takes, entry.gives) if kind),
    ]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    for entry in described:
        if entry.takes is not None:
            fields = components[entry.takes.__name__]["properties"]
            _name_languages(fields, languages)
            _limit_beams(fields, beam_limit)
    of_type = dict(zip(map(str, types), schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "transept",
            "version": __version__,
            "description": "A private translation server. `/translate`, `/detect`, `/languages`, "
            "`/health` and `/frontend/settings` are those of LibreTranslate. Bodies may be sent "
            "as forms.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            entry.path: {entry.method.lower(): _operation(entry, of_type, key_required)}
            for entry in described
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _name_languages(fields: dict[str, Any], languages: Languages) -> None:
    """Replace "any text" by the codes of the languages that are served."""
    for name in languages.keys() & fields.keys():
        others: list[str | None] = ["auto"] if name == "source" else []
        if "anyOf" in fields[name]:
            others = [None]
        fields[name]["enum"] = [*languages[name], *others]


def _limit_beams(fields: dict[str, Any], limit: int) -> None:
    """Add the maximum of `beam_size` and `n_best`: it is a setting, so the types do not have it."""
    for name in {"beam_size", "n_best"} & fields.keys():
        kinds = fields[name].get("anyOf", [fields[name]])
        for kind in kinds:
            if kind["type"] == "integer":
                kind["maximum"] = limit


def _operation(entry: Entry, of_type: dict[str, Any], key_required: bool) -> dict[str, Any]:
    needs_key = key_required and entry.access == "key"
    operation: dict[str, Any] = {
        "summary": (entry.handler.__doc__ or "").strip(),
        "operationId": entry.handler.__name__,
        "responses": {
            "200": {
                "description": EVENTS_SAID if entry.content_type == EVENTS else GIVEN,
                "content": {entry.content_type: _content(entry, of_type)},
            },
            **{str(status): _fault(status, of_type) for status in _faults(entry, needs_key)},
        },
    }
    if needs_key:
        operation["security"] = [{"key": []}]
    if entry.takes is not None:
        schema = {"schema": of_type[str(entry.takes)]}
        operation["requestBody"] = {"required": True, "content": {JSON: schema}}
    return operation


def _content(entry: Entry, of_type: dict[str, Any]) -> dict[str, Any]:
    return {} if entry.content_type == EVENTS else {"schema": of_type[str(entry.gives)]}


def _faults(entry: Entry, needs_key: bool) -> list[int]:
    faults = {*entry.faults}
    if entry.takes is not None:
        faults |= {*OF_A_BODY}
    return sorted(faults | ({403} if needs_key else set()))


def _fault(status: int, of_type: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {JSON: {"schema": of_type[str(ErrorAnswer)]}},
    }
