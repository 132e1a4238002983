"""Public corpora: where they lie, how they are downloaded, unpacked and cut."""
