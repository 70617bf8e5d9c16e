"""The site answers while Redis is down or silent."""

import pickle
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from pytest_django import Settings

from config import redis_cache
from config.redis_cache import JsonSerializer
from tests.factories import make_bearer, make_user


@pytest.fixture(params=["down", "silent"])
def redis_address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A port that nobody serves, and one where connections are accepted but never answered."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if request.param == "silent":
            server.listen(64)
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0"


@pytest.fixture(autouse=True)
def redis_only(redis_address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_cache.Client, "down_until", 0.0)
    settings.CACHES = {
        "default": {
            "BACKEND": "config.redis_cache.Cache",
            "LOCATION": redis_address,
            "OPTIONS": {"socket_connect_timeout": 1.0, "socket_timeout": 1.0},
        }
    }


@pytest.mark.django_db
def test_rest_and_health_answer_and_only_the_first_request_waits(client: Client) -> None:
    headers = make_bearer(make_user())
    assert client.get("/api/v1/health").status_code == 200
    begun = time.monotonic()
    for _ in range(20):
        answer = client.get("/api/v1/projects", headers=headers)
        assert answer.status_code == 200
        assert int(answer["RateLimit-Remaining"]) > 0
    assert time.monotonic() - begun < 15


@pytest.mark.django_db
def test_ready_names_the_broker(client: Client, settings: Settings, redis_address: str) -> None:
    settings.CELERY_BROKER_URL = redis_address
    answer = client.get("/api/v1/ready")
    assert answer.status_code == 503
    broken = [part["name"] for part in answer.json()["parts"] if not part["ok"] and part["needed"]]
    assert broken == ["broker"]


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path(self.path),))


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    stored = pickle.dumps(Bomb(str(tmp_path / "run")))
    assert JsonSerializer().loads(stored) is None
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [0, 7, True, None, "text", [1, "a", None], {"a": {"b": [1.5]}}])
def test_json_comes_back(value: object) -> None:
    written = JsonSerializer().dumps(value)
    assert JsonSerializer().loads(str(written).encode() if isinstance(written, int) else written) == value


def test_what_is_no_json_is_not_stored() -> None:
    with pytest.raises(TypeError):
        JsonSerializer().dumps(Bomb("x"))


def test_redis_is_written_by_it() -> None:
    text = (Path(settings.BASE_DIR) / "config" / "settings.py").read_text()
    assert '"serializer": "config.redis_cache.JsonSerializer"' in text
