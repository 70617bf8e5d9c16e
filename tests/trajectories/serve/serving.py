"""A server of a project's scenarios in the test's process, while a client plays."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from curation.trajectories.management.commands.serve_env import make_server

OPTIONS: dict[str, object] = {
    "project": "acme",
    "sessions": 2,
    "max_turns": 6,
    "command_timeout": 5.0,
    "episode_timeout": 60.0,
    "rate_from": None,
    "rate_to": None,
    "require": "",
}


def serve(play: Callable[[str], Awaitable[None]], **options: Any) -> None:
    """Serve the project while `play` works with the server's address."""
    server = make_server({**OPTIONS, **options})

    async def both() -> None:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(server.serve("127.0.0.1", 0, port.set_result))
        try:
            await play(f"http://127.0.0.1:{await port}")
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving

    asyncio.run(both())
