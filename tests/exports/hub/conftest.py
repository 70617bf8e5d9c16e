from collections.abc import Iterator

import pytest
from pytest_django import Settings

from curation.llm.endpoints.keys import read_rules
from tests.exports.hub.stub_hub import TOKEN, Hub, running_hub


@pytest.fixture
def hub(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    settings.ALLOW_PRIVATE_HUB_HOSTS = True
    settings.HUB_TOKENS = read_rules("ACME_HUB_TOKEN=127.0.0.1")
    monkeypatch.setenv("ACME_HUB_TOKEN", TOKEN)
    with running_hub() as found:
        yield found
