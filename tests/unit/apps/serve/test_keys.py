import hashlib
from pathlib import Path

import pytest

from transept.apps.serve.envelope import Keys
from transept.apps.serve.settings import ServerSettings
from transept.errors import ConfigError

KEY = "sixteen-letters-or-more"


def test_keys_are_accepted_by_value_or_hash(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    digest = hashlib.sha256(b"another key, also long").hexdigest()
    file.write_text(f"# keys\n\n  {KEY}\nsha256:{digest}\n")
    keys = Keys.read(file)
    assert keys.required
    assert keys.accept(KEY)
    assert keys.accept("another key, also long")
    for wrong in (None, "", KEY[:-1], f"sha256:{digest}", digest, "# keys", "\ud800"):
        assert not keys.accept(wrong)


def test_every_key_is_accepted_without_a_file() -> None:
    assert Keys.read(None).accept(None)


@pytest.mark.parametrize(
    ("content", "error"),
    [("", "contains no key"), ("# none\n", "contains no key"),
     ("ok\n", "line 1: key_file: is shorter"),
     (f"{KEY}\nsha256:zz\n", "line 2: key_file: must be sha256:")],
)  # fmt: skip
def test_bad_key_file_is_rejected(tmp_path: Path, content: str, error: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ConfigError, match=error):
        Keys.read(file)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_requires_no_key(host: str) -> None:
    assert ServerSettings(host=host).local_names_only


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", ""])
def test_other_hosts_require_key_file_or_no_key(host: str) -> None:
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        ServerSettings(host=host)
    assert not ServerSettings(host=host, no_key=True).local_names_only
    assert not ServerSettings(host=host, key_file=Path("keys")).local_names_only


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        ServerSettings(port=70_000, deadline=0, queue_limit=3, origin=("example.org",))
    assert [problem.key for problem in error.value.problems] == [
        "port", "queue_limit", "deadline", "origin"
    ]  # fmt: skip
