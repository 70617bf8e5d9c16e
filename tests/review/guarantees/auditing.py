"""Shared by the tests of guarantees: people who call by REST, and audits that they work off."""

import json
from collections.abc import Callable
from typing import Any

from django.test import Client

from curation.projects.models import Project, Role
from tests.factories import make_bearer, make_member

SAMPLES, LOOKS = 40, 20
AUDIT = {"score": "score", "size": LOOKS, "extensions": 0, "alpha": 0.2, "delta": 0.1}


class Caller:
    """A member of the project who calls by token."""

    def __init__(self, client: Client, project: Project, role: str = Role.REVIEWER) -> None:
        self.user = make_member(project, role=role)
        self.client, self.headers, self.project = client, make_bearer(self.user), project

    def __call__(self, method: str, path: str, body: object = None, status: int = 0) -> Any:
        sent = b"" if body is None else json.dumps(body).encode()
        answer = self.client.generic(method, f"/api/v1{path}", sent, "application/json", headers=self.headers)
        assert answer.status_code == (status or {"POST": 201, "DELETE": 204}.get(method, 200)), answer.content
        return answer.json() if answer.content else None

    def draw(self, **values: object) -> Any:
        return self("POST", f"/projects/{self.project.slug}/audits", {**AUDIT, **values})

    def next(self) -> Any:
        """The next sample of the queue, None if there is none."""
        path = f"/api/v1/projects/{self.project.slug}/queue/next"
        answer = self.client.generic("POST", path, b"", "application/json", headers=self.headers)
        return answer.json()["sample"] if answer.status_code == 200 else None

    def decide(self, sample: str, action: str = "approve", **values: object) -> Any:
        return self("POST", f"/samples/{sample}/decisions", {"action": action, **values})

    def work_off(self, looks: int = LOOKS, action: Callable[[int], str] = lambda number: "approve") -> list[str]:
        """Decide so many samples of the queue, and return their ids."""
        taken = []
        for number in range(looks):
            sample = self.next()
            self.decide(sample["id"], action(number), seconds=30.0)
            taken.append(sample["id"])
        return taken

    def statuses(self, query: str = "") -> dict[str, str]:
        found = self("GET", f"/projects/{self.project.slug}/samples?limit=500{query}")["data"]
        return {row["id"]: row["status"] for row in found}
