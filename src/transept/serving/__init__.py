"""A private translation server, which clients of LibreTranslate can use as it is.

In reading order: `settings` (what can be set), `models` (what is served, and reloading),
`messages` (what is sent and answered), `bodies` and `answers` (reading and writing that, within
limits), `languages` (guessing one), `inline`, `markup` and `texts` (sentences of a text, of HTML,
and where its tags go), `asks` (what a model can be asked for), `jobs` and `batching` (all requests
together, through one thread), `work` (what the paths share), the paths: `libretranslate`,
`streaming`, `analysis` with `trees`, `care`; `metrics` (figures), `protection` (keys, headers,
hosts), `routes` (the table of paths), `openapi` (the same, described), `app` (put together),
`hangups` and `running` (the process: socket, signals).
"""
