"""The MCP server, by the official SDK's client: the same API, the same tokens, and no decision without the scope."""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pytest_django.live_server_helper import LiveServer

from curation.review.models import Decision
from curation.runs.models import Run
from tests.factories import make_bearer, make_duel, make_endpoint, make_project, make_user
from winnow.mcp import Site, server_of

pytestmark = pytest.mark.django_db(transaction=True)
Work = Callable[[Client], Awaitable[Any]]


def with_client(server: Any, work: Work) -> Any:
    async def run() -> Any:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(run())


def text_of(result: Any) -> str:
    return str(result.content[0].text)


def secret_of(headers: dict[str, str]) -> str:
    return headers["Authorization"].removeprefix("Bearer ")


def test_an_agent_reads_and_launches_and_decides_only_with_the_scope(live_server: LiveServer) -> None:
    ada = make_user("ada")
    project = make_project("acme", user=ada)
    make_endpoint(project, "king", model="scripted/king")
    sample = make_duel(project, status="pending").sample
    assert sample
    tokens = {scopes: secret_of(make_bearer(ada, *scopes)) for scopes in (("read", "run"), ("read", "review"))}
    decision = {"sample_id": str(sample.pk), "body": {"action": "approve", "version": sample.version}}

    async def launch(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"list_samples", "launch_run"} <= set(tools) and not {"decide_sample", "create_export"} & set(tools)
        schema = tools["launch_run"].input_schema
        assert schema["required"] == ["slug", "body"] and "RunIn" in schema["$defs"]
        listed = await client.call_tool("list_samples", {"slug": "acme", "status": "pending"})
        assert not listed.is_error and f'"id":"{sample.pk}"' in text_of(listed).replace(" ", "")
        body = {"kind": "king", "params": {"model": "king"}}
        launched = await client.call_tool("launch_run", {"slug": "acme", "body": body})
        assert not launched.is_error, launched.content
        for name, arguments in (("decide_sample", decision), ("delete_project", {"slug": "acme"}), ("get_run", {})):
            assert (await client.call_tool(name, arguments)).is_error

    async def decide(client: Client) -> None:
        assert "decide_sample" in {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("launch_run", {"slug": "acme", "body": {"kind": "king", "params": {}}})
        assert refused.is_error and "scope" in text_of(refused)
        decided = await client.call_tool("decide_sample", decision)
        assert not decided.is_error, decided.content

    with_client(server_of(Site(live_server.url, tokens["read", "run"])), launch)
    assert Run.objects.filter(project=project, kind="king", created_by=ada).count() == 1
    assert not Decision.objects.exists()
    with_client(server_of(Site(live_server.url, tokens["read", "review"])), decide)
    assert Decision.objects.get().reviewer == ada


def test_over_http_each_request_has_its_own_token(live_server: LiveServer) -> None:
    make_project("acme", user=(ada := make_user("ada")))
    make_project("other", user=(bob := make_user("bob")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = server_of(Site(live_server.url, "")).streamable_http_app(stateless_http=True)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()

    async def projects(headers: dict[str, str]) -> str:
        async with httpx2.AsyncClient(headers=headers) as http:
            for _ in range(100):
                try:
                    await http.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx2.ConnectError:
                    await asyncio.sleep(0.05)
            async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client:
                result = await client.call_tool("list_projects", {})
                return text_of(result)

    try:
        assert '"acme"' in (seen := asyncio.run(projects(make_bearer(ada)))) and '"other"' not in seen
        assert '"other"' in (seen := asyncio.run(projects(make_bearer(bob)))) and '"acme"' not in seen
        assert "Send an API token" in asyncio.run(projects({}))
    finally:
        server.should_exit = True
        thread.join(10)


def test_the_command_speaks_over_stdio(live_server: LiveServer, tmp_path: Path) -> None:
    ada = make_user("ada")
    make_project("acme", user=ada)
    environment = {**os.environ, "WINNOW_TOKEN": secret_of(make_bearer(ada, "read")), "WINNOW_DATA": str(tmp_path)}
    arguments = ["-m", "winnow", "mcp", "--url", live_server.url]
    process = StdioServerParameters(
        command=sys.executable, args=arguments, env=environment, cwd=Path(__file__).resolve().parents[2]
    )

    async def read(client: Client) -> str:
        return text_of(await client.call_tool("get_project", {"slug": "acme"}))

    assert '"acme"' in with_client(process, read)
