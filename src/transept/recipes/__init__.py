"""A recipe is a whole experiment as one committed file: text, vocabulary, training, scores.

`recipe` is the file, `work` the directory it runs in (the demo's too), `stages` what is done there
one after another, `records` what each stage writes down, `pages` the report made from records,
`shipping` a model small enough to lie in a package.
"""
