"""A private translation server. Clients of LibreTranslate can use it unchanged.

In reading order:

- Configuration and models: `settings`, `models` (loading, reloading, language pairs and the pivot,
  language detection), `runs` (training runs for a dashboard).
- HTTP: `messages` (request and response types), `access` (other web sites, rate limits), `envelope`
  (bodies, errors, keys, headers, log, metrics).
- Decoding: `operations` (translate, score, attend, parse), `batching` (decodes the sentences of all
  requests in one thread), `streaming` (a translation that is sent while it grows).
- Routing: `backend` (shared by all handlers), `handlers` (one function per path), `inside`
  (words, choices and the beam search of a translation), `files` (translation of files), `app` (the
  path table, the ASGI application, the OpenAPI document).
- Process: `protocol` (limits of a connection), `running` (socket and signals), `command`
  (`transept serve`).
"""
