"""The tests. They are a package because argostranslate installs another one named `tests`."""
