"""Stand-ins of `usual_servers` that speak MCP, and their classes of actions."""

from typing import Annotated, Any, ClassVar

from fastmcp import FastMCP
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field, TypeAdapter


class WorldAction(Action):  # type: ignore[misc]
    """One of two actions."""

    either: ClassVar = TypeAdapter(Annotated[ListToolsAction | CallToolAction, Field(discriminator="type")])

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> Action:
        return cls.either.validate_python(obj)

    @classmethod
    def model_json_schema(cls, **given: Any) -> dict[str, Any]:
        return cls.either.json_schema(**given)


class OwnCall(CallToolAction):  # type: ignore[misc]
    pass


class Echo(MCPEnvironment):  # type: ignore[misc]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        mcp: FastMCP[Any] = FastMCP("echo")

        @mcp.tool
        def echo_message(message: str) -> str:
            """Echo back the provided message."""
            return message

        super().__init__(mcp)

    def reset(self, seed: int | None = None, **_: Any) -> Observation:
        return Observation(reward=0.0, metadata={"status": "ready"})

    def _step_impl(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        raise ValueError("only tools")

    @property
    def state(self) -> State:
        return State()


class Bare(Echo):
    def __init__(self) -> None:
        MCPEnvironment.__init__(self, FastMCP("bare"))
