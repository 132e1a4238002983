"""Models for other engines: `ctranslate2` writes what CTranslate2 reads."""
