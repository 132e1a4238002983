"""A private translation server. Clients of LibreTranslate can use it unchanged.

In reading order:

- What is served: `settings`, `models` (loading and reloading).
- Messages: `messages` (requests and answers), `bodies` (reading a request within limits),
  `answers`.
- Texts: `languages` (guessing one), `inline`, `markup` and `texts` (taking a text or HTML apart
  into sentences, and putting the translation together with its tags).
- Decoding: `operations` (what a model can do), `jobs` and `batching` (all requests together,
  through one thread).
- Paths: `backend` (what they share), `libretranslate`, `streaming`, `analysis` with `trees`,
  `monitoring` with `metrics`, `routes` (the table of all paths), `openapi` (their description).
- The process: `protection` (keys, headers, host names), `app` (all of it put together), `hangups`
  and `running` (socket and signals), `command` (`transept serve`).
"""
