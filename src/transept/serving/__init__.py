"""A private translation server, which clients of LibreTranslate can use as it is.

In reading order: `settings` (what can be set), `models` (which languages are served, and
reloading), `batching` (sentences of all requests together, through one model), `messages` (what
is sent and answered), `bodies` (reading what is sent, within limits), `markup` and `languages`
(HTML, and guessing a language), `routes` (what each path does), `openapi` (the same, described),
`protection` (keys, headers, hosts), `app` (put together), `running` (the process: socket, signals).
"""
