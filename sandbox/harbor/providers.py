"""The providers of sandboxes on which Harbor may run, by the operator's setting `HARBOR_PROVIDERS`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# By the checks that Harbor 0.26 makes before it starts; others are in Harbor's docs.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "daytona": ("DAYTONA_API_KEY",),
    "e2b": ("E2B_API_KEY",),
    "modal": ("MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"),
    "runloop": ("RUNLOOP_API_KEY",),
    "novita": ("NOVITA_API_KEY",),
    "beam": ("BEAM_TOKEN",),
    "blaxel": ("BL_WORKSPACE", "BL_API_KEY"),
    "hf-sandbox": ("HF_TOKEN",),
}
_RULE = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)(=(?P<variables>[A-Z0-9_|]+))?(@(?P<projects>[a-z0-9|-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class SandboxProvider:
    """A provider, the variables that Harbor gets for it, and the projects that may use it; empty means all."""

    name: str
    variables: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    @property
    def needs(self) -> str:
        """The needs of a worker, in words."""
        if self.variables:
            return f"{' and '.join(self.variables)} in the workers' environment"
        if self.name == "docker":
            return "Docker with the Compose plugin on the workers' machines"
        return "what Harbor's documentation says, on the workers' machines"

    def permits(self, project: str) -> bool:
        return not self.projects or project in self.projects


def read_providers(text: str) -> tuple[SandboxProvider, ...]:
    """Read `docker@team-a; daytona; modal=MODAL_TOKEN_ID|MODAL_TOKEN_SECRET`. Raises `ValueError` with the mistake."""
    return tuple(_read(entry.strip()) for entry in text.split(";") if entry.strip())


def named(providers: Sequence[SandboxProvider], name: str, project: str) -> SandboxProvider | None:
    return next((one for one in providers if one.name == name and one.permits(project)), None)


def _read(entry: str) -> SandboxProvider:
    found = _RULE.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry!r} must have the form provider=VARIABLE|VARIABLE@project|project")
    variables = tuple((found["variables"] or "").split("|")) if found["variables"] else _NEEDS.get(found["name"], ())
    return SandboxProvider(
        found["name"], variables, tuple((found["projects"] or "").split("|")) if found["projects"] else ()
    )
