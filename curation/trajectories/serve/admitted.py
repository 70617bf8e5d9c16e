"""The scenarios that an OpenEnv server plays: those that are admitted when it starts, as they are then."""

import hashlib
from collections.abc import Sequence

from django.db import connection
from django.db.models import Q

from curation.projects.models import Project
from curation.runs.workers.sandbox import labels_of_server
from curation.scenarios.bundles.document import setup_of, stored_bundle
from curation.scenarios.models import Scenario
from judging.statistics.rates import Interval
from sandbox.agent.openenv_server import NotServed, ServedTask
from sandbox.agent.shell_environment import ShellTask
from sandbox.protocol import SessionLimits


class AdmittedScenarios:
    """Those whose measured difficulty, the kept rate of rollouts, is within both ends of `rate`; all without one.
    `version` is the SHA-256 of their names and bundles: the same one serves the same tasks."""

    def __init__(self, project: Project, limits: SessionLimits, rate: Interval | None = None) -> None:
        admitted = Scenario.objects.of(project).for_rollout().order_by("name")
        if rate is not None:
            # What nobody has tried has a rate below 0.
            admitted = admitted.with_tries().filter(Q(kept_rate__gte=max(rate.low, 0.0), kept_rate__lte=rate.high))
        self._bundles = dict(admitted.values_list("name", "bundle_sha256"))
        self._project, self._limits = project, limits
        self.names: Sequence[str] = list(self._bundles)
        lines = (f"{name}\0{sha256}\n" for name, sha256 in self._bundles.items())
        self.version = hashlib.sha256("".join(lines).encode()).hexdigest()

    def load(self, name: str) -> ServedTask:
        try:
            return self._load(name)
        finally:
            connection.close()

    def _load(self, name: str) -> ServedTask:
        row = Scenario.objects.of(self._project).for_rollout().with_bundle().filter(name=name).first()
        if row is None or row.bundle_sha256 != self._bundles[name]:
            raise NotServed(f"The scenario {name!r} was edited or is no longer admitted: start the server again.")
        bundle = stored_bundle(row.text.bundle)
        setup = setup_of(bundle, limits=self._limits, labels=labels_of_server())
        return ServedTask(name, ShellTask(setup, bundle.checker, bundle.expected_terminal), row.bundle_sha256, row.axes)
