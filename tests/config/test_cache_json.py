"""The cache stores JSON: write access to Redis runs no code here."""

import pickle
from pathlib import Path

import pytest
from django.conf import settings

from config.redis_cache import JsonSerializer


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
