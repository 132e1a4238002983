"""Files: find the text of a document, and write its translation in its place.

Each paragraph of a file becomes a line of HTML. Its formatting becomes `<span id="1">`, and
everything else in it `<img id="2">`. So the code that moves the tags of HTML with their words also
moves the formatting of other documents. Nothing here imports torch.

In reading order: `archive` (zip files within limits), `tags` (markup as numbered HTML tags),
`elements` (the paragraphs of an XML document), `dialects` (Office Open XML, OpenDocument and
others), `subtitles` (SubRip and WebVTT), `catalogs` (gettext), and `opening` (formats by their
names).
"""
