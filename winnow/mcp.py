"""An MCP server for agents: each tool is one REST call of a running Winnow, made with the agent's own API token.

`winnow mcp` speaks over stdin and stdout with the token in `WINNOW_TOKEN`; with `--http` it serves streamable HTTP, and
each request brings its own token. Tools and their parameters come from the site's OpenAPI document. The site decides
what a token may do; a tool whose scope the token lacks is not listed either.
"""

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from winnow.client.rows import query
from winnow.client.site import address_of, token_of

try:
    import mcp_types as types
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
except ImportError:
    sys.exit("The MCP server needs the extra mcp: pip install 'winnow-curation[mcp]'")

Json = dict[str, Any]
V1 = "/api/v1"
PROJECT = f"{V1}/projects/{{slug}}"
# Tool: (scope, method, path). What deletes, changes settings or members is not for agents.
TOOLS = {
    "list_projects": ("read", "get", f"{V1}/projects"),
    "compare_projects": ("read", "get", f"{V1}/overview"),
    "get_project": ("read", "get", PROJECT),
    "get_stats": ("read", "get", f"{PROJECT}/stats"),
    "list_models": ("read", "get", f"{PROJECT}/models"),
    "list_scenarios": ("read", "get", f"{PROJECT}/scenarios"),
    "get_scenario": ("read", "get", f"{V1}/scenarios/{{scenario_id}}"),
    "list_prompts": ("read", "get", f"{PROJECT}/prompts"),
    "list_trajectories": ("read", "get", f"{PROJECT}/trajectories"),
    "get_trajectory": ("read", "get", f"{V1}/trajectories/{{trajectory_id}}"),
    "list_duels": ("read", "get", f"{PROJECT}/duels"),
    "get_duel": ("read", "get", f"{V1}/duels/{{duel_id}}"),
    "list_samples": ("read", "get", f"{PROJECT}/samples"),
    "get_sample": ("read", "get", f"{V1}/samples/{{sample_id}}"),
    "list_decisions": ("read", "get", f"{PROJECT}/decisions"),
    "list_evaluations": ("read", "get", f"{PROJECT}/evaluations"),
    "get_evaluation": ("read", "get", f"{V1}/evaluations/{{evaluation_id}}"),
    "get_leaderboard": ("read", "get", f"{PROJECT}/leaderboard"),
    "list_runs": ("read", "get", f"{PROJECT}/runs"),
    "get_run": ("read", "get", f"{V1}/runs/{{run_id}}"),
    "list_run_events": ("read", "get", f"{V1}/runs/{{run_id}}/events"),
    "list_run_items": ("read", "get", f"{V1}/runs/{{run_id}}/items"),
    "estimate_run": ("run", "post", f"{PROJECT}/runs/estimate"),
    "launch_run": ("run", "post", f"{PROJECT}/runs"),
    "cancel_run": ("run", "post", f"{V1}/runs/{{run_id}}/cancel"),
    "list_exports": ("read", "get", f"{PROJECT}/exports"),
    "get_export": ("read", "get", f"{V1}/exports/{{export_id}}"),
    "preview_export": ("read", "post", f"{PROJECT}/exports/preview"),
    "preview_export_again": ("read", "get", f"{V1}/exports/{{export_id}}/preview"),
    "list_export_rows": ("read", "get", f"{V1}/exports/{{export_id}}/rows"),
    "get_export_row": ("read", "get", f"{V1}/exports/{{export_id}}/rows/{{sha256}}"),
    "read_export_file": ("read", "get", f"{V1}/exports/{{export_id}}/files/{{name}}"),
    "diff_exports": ("read", "get", f"{V1}/exports/{{before}}/diff/{{after}}"),
    "create_export": ("export", "post", f"{PROJECT}/exports"),
    "decide_sample": ("review", "post", f"{V1}/samples/{{sample_id}}/decisions"),
}
# What changes something that is there: a running run, or the status of a sample.
DESTRUCTIVE = {"cancel_run", "decide_sample"}
# Tools that read a part of a file, at most so many bytes at a time.
RANGED = {"read_export_file"}
MOST_BYTES = 64 * 1024
FIRST_BYTE = {"type": "integer", "minimum": 0, "default": 0, "description": f"{MOST_BYTES} bytes from here are read."}


@dataclass(slots=True)
class Site:
    """A running Winnow. `token` is that of stdio; over HTTP it is empty, and each request has its own."""

    url: str
    token: str = ""
    document: Json = field(default_factory=dict)

    async def tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        try:
            async with self._client(ctx) as client:
                if not self.document:
                    self.document = _json(await client.get(f"{V1}/openapi.json"))
                scopes = await _scopes(client)
        except (httpx.HTTPError, PermissionError) as error:
            raise MCPError(types.INVALID_REQUEST, self._reason(error)) from None
        return types.ListToolsResult(tools=[self._tool(name) for name, (scope, *_) in TOOLS.items() if scope in scopes])

    async def call(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            return _result(f"There is no tool {params.name!r}.", is_error=True)
        _, method, path = TOOLS[params.name]
        given = dict(params.arguments or {})
        try:
            for name in _names_in(path):
                path = path.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
        except KeyError as missing:
            return _result(f"The argument {missing} is missing.", is_error=True)
        body = given.pop("body", None)
        headers = {}
        if params.name in RANGED:
            first = given.pop("first_byte", 0)
            if not isinstance(first, int) or first < 0:
                return _result("The argument first_byte is a number from 0.", is_error=True)
            headers["Range"] = f"bytes={first}-{first + MOST_BYTES - 1}"
        try:
            async with self._client(ctx) as client:
                response = await client.request(method, path, params=list(query(given)), json=body, headers=headers)
        except (httpx.HTTPError, PermissionError) as error:
            return _result(self._reason(error), is_error=True)
        if response.status_code == 206:
            return _part(response)
        if response.status_code == 416:
            size = response.headers["Content-Range"].rpartition("/")[2]
            return _result(f"The file has {size} bytes, so first_byte must be less than {size}.", is_error=True)
        if response.is_error:
            return _result(_refusal(response), is_error=True)
        return _result(response.text, is_error=False)

    def _reason(self, error: httpx.HTTPError | PermissionError) -> str:
        if isinstance(error, httpx.HTTPStatusError):
            return _refusal(error.response)
        if isinstance(error, httpx.HTTPError):
            return f"{self.url} does not answer: {error or type(error).__name__}"
        return str(error)

    def _client(self, ctx: Any) -> httpx.AsyncClient:
        sent = ctx.request.headers.get("authorization", "") if ctx.request is not None else f"Bearer {self.token}"
        if not sent.removeprefix("Bearer").strip():
            raise PermissionError("Send an API token: WINNOW_TOKEN, or Authorization: Bearer with each HTTP request.")
        return httpx.AsyncClient(base_url=self.url, headers={"Authorization": sent}, timeout=60)

    def _tool(self, name: str) -> types.Tool:
        _, method, path = TOOLS[name]
        operation = self.document["paths"][path][method]
        parameters = operation.get("parameters", [])
        schema: Json = {"type": "object", "additionalProperties": False}
        schema["properties"] = {one["name"]: one["schema"] for one in parameters if one["in"] in {"path", "query"}}
        schema["required"] = [one["name"] for one in parameters if one.get("required") and one["in"] != "header"]
        if name in RANGED:
            schema["properties"]["first_byte"] = FIRST_BYTE
        if "requestBody" in operation:
            schema["properties"]["body"] = operation["requestBody"]["content"]["application/json"]["schema"]
            schema["required"].append("body")
        description = ". ".join(filter(None, (operation["summary"], operation.get("description", ""))))
        hints = types.ToolAnnotations(read_only_hint=TOOLS[name][0] == "read", destructive_hint=name in DESTRUCTIVE)
        known = self.document["components"]["schemas"]
        return types.Tool(
            name=name, description=description, input_schema=_with_definitions(schema, known), annotations=hints
        )


def server_of(site: Site) -> "Server[Any]":
    return Server(
        "winnow",
        instructions="Winnow makes training data for agent models. Begin with list_projects; most tools need its slug.",
        on_list_tools=site.tools,
        on_call_tool=site.call,
    )


def serve(url: str, http: int | None, host: str) -> None:
    """Serve until the client leaves, or until the process ends; `http` is the port, without which it is stdio."""
    try:
        url = address_of(url)
        token = token_of("") if http is None else ""
    except ValueError as error:
        sys.exit(f"Error: {error}")
    if http is None:
        asyncio.run(_over_stdio(server_of(Site(url, token))))
    else:
        import uvicorn

        app = server_of(Site(url)).streamable_http_app(stateless_http=True, host=host)
        uvicorn.run(app, host=host, port=http, log_level="warning")


async def _over_stdio(server: "Server[Any]") -> None:
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _scopes(client: httpx.AsyncClient) -> set[str]:
    """What the token may do at most; a role may allow less, which the call then says."""
    prefix = str(client.headers["Authorization"]).removeprefix("Bearer ")[:8]
    rows = _json(await client.get(f"{V1}/tokens", params={"limit": 500}))["data"]
    return {scope for row in rows if row["prefix"] == prefix for scope in row["scopes"]}


def _json(response: httpx.Response) -> Json:
    if "json" not in response.headers.get("Content-Type", ""):
        raise httpx.HTTPStatusError("", request=response.request, response=response)
    response.raise_for_status()
    found: Json = response.json()
    return found


def _refusal(response: httpx.Response) -> str:
    """Return the problem document, or what something that is not the site answered."""
    media = response.headers.get("Content-Type", "").partition(";")[0]
    if "json" in media:
        return response.text
    return (
        f"{response.url} answered {response.status_code} with {media or 'nothing'}. Is --url the address of the site?"
    )


def _names_in(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _with_definitions(schema: Json, known: Json) -> Json:
    """The schema with the definitions that it refers to, so that it can be read alone."""
    text = json.dumps(schema)
    definitions: Json = {}
    waiting = [name for name in known if f'"#/components/schemas/{name}"' in text]
    while waiting:
        name = waiting.pop()
        definitions[name] = known[name]
        inner = json.dumps(known[name])
        waiting += [other for other in known if f'"#/components/schemas/{other}"' in inner and other not in definitions]
    whole = json.dumps({**schema, **({"$defs": definitions} if definitions else {})})
    found: Json = json.loads(whole.replace("#/components/schemas/", "#/$defs/"))
    return found


def _part(response: httpx.Response) -> types.CallToolResult:
    """Return a part of a file, after which bytes it is; those of a compressed file are no text."""
    if b"\x00" in response.content or response.content.startswith(b"\x1f\x8b"):
        return _result("The file is no text. Read an export in a text format, or its rows.", is_error=True)
    text = response.content.decode(errors="replace")
    return _result(f"{response.headers['Content-Range']}\n{text}", is_error=False)


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)
