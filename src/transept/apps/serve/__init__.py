"""A private translation server. Clients of LibreTranslate can use it unchanged.

In reading order:

- What is served: `settings`, `models` (loading, reloading, guessing a language).
- What comes and goes: `messages` (requests and answers), `envelope` (bodies, errors, keys, headers,
  log, metrics).
- Texts: `texts` (taking a text or HTML apart into sentences, and putting the translation together),
  `inline` (tags move with their words).
- Decoding: `operations` (what a request asks of a model), `batching` (all requests together,
  through one thread).
- Paths: `backend` (what they share), `handlers` (one function for each), `app` (the table of all
  paths, the application, the OpenAPI document).
- The process: `running` (socket and signals), `command` (`transept serve`).
"""
