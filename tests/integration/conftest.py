"""A small prepared corpus, made once for all tests that train on it."""

import pytest
from tests.integration.workshop import Workshop, open_workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return open_workshop(tmp_path_factory.mktemp("workshop"))
