"""One declaration of a call for both clients.

A call is written as a coroutine. `Winnow` runs it to its end, because its transport blocks; `AsyncWinnow` returns it.
Classes of objects that make calls have a parameter, `Sync` or `Async`, which only type checkers read: `project.run(…)`
returns `Run[Sync]` in one and is awaited for `Run[Async]` in the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, overload

from typing_extensions import TypeVar

from winnow_client.transport import Transport

P = ParamSpec("P")
R = TypeVar("R")


class Sync:
    """Marks the objects of `Winnow`, whose calls block."""


class Async:
    """Marks the objects of `AsyncWinnow`, whose calls are awaited."""


M = TypeVar("M", default=Sync)


class Caller(Generic[M]):
    """An object that makes calls."""

    _transport: Transport


class call(Generic[P, R]):  # noqa: N801 - a decorator
    """Declares a call by its coroutine function."""

    def __init__(self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, caller: None, kind: type) -> Self: ...
    @overload
    def __get__(self, caller: Caller[Sync], kind: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, caller: Caller[Async], kind: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, caller: Caller[Any] | None, kind: type) -> object:
        if caller is None:
            return self
        method = self.function.__get__(caller, kind)
        return method if caller._transport.is_async else functools.wraps(method)(functools.partial(run, method))


def run(function: Callable[P, Coroutine[Any, Any, R]], *given: P.args, **named: P.kwargs) -> R:
    """Run a coroutine whose transport blocks, so that it never waits for an event loop."""
    coroutine = function(*given, **named)
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    coroutine.close()
    raise RuntimeError(f"{function!r} waits for an event loop")
