"""Django's Redis cache, which the site can do without: its counters and copies are never the truth."""

import logging
import time
from typing import Any

import orjson
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
# While Redis is down, only one request in this time waits for it.
PAUSE_SECONDS = 5.0


class JsonSerializer:
    """JSON instead of pickles: write access to Redis must not run code here. Numbers stay numbers, for `incr`."""

    def dumps(self, value: object) -> int | bytes:
        return value if type(value) is int else orjson.dumps(value)

    def loads(self, stored: bytes) -> object:
        try:
            return orjson.loads(stored)
        except orjson.JSONDecodeError:
            logger.warning("the cache has a value that is not JSON: it is not used")
            return None


class Client(RedisCacheClient):
    """While Redis is down nothing is found and nothing is stored, so that limits do not apply and pages still work."""

    down_until = 0.0

    def get(self, key: Any, default: Any) -> Any:
        return self._or(default, "get", key, default)

    def set(self, key: Any, value: Any, timeout: Any) -> None:
        self._or(None, "set", key, value, timeout)

    def add(self, key: Any, value: Any, timeout: Any) -> bool:
        return bool(self._or(False, "add", key, value, timeout))

    def incr(self, key: Any, delta: int) -> int:
        count = self._or(None, "incr", key, delta)
        if count is None:
            raise ValueError(f"Key {key!r} not found.")  # as for a key that is not stored
        return int(count)

    def delete(self, key: Any) -> bool:
        return bool(self._or(False, "delete", key))

    def _or(self, missing: Any, name: str, *args: Any) -> Any:
        if time.monotonic() < Client.down_until:
            return missing
        try:
            return getattr(super(), name)(*args)
        except RedisError as error:
            Client.down_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("the cache is not used for %s s: %s", PAUSE_SECONDS, type(error).__name__)
            return missing


class Cache(RedisCache):
    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = Client
