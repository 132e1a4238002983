"""Import models of other toolkits, and export models to them.

In reading order: `commands` (`transept import`, `transept export`), `importing` (recognizes the
format of a model), `exporting` (writes a format), `runners` (the programs that run exported models)
and `verification` (compares them with the network).
"""
