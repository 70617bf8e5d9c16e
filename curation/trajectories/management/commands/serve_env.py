"""`manage.py serve_env`: an OpenEnv server of a project's admitted scenarios."""

import asyncio
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from curation.projects.models import Project
from curation.runs.workers.sandbox import NoSandbox, backend, shell_environment
from curation.trajectories.rollout.stage import limits_of
from curation.trajectories.serve.admitted import AdmittedScenarios
from judging.statistics.rates import Interval
from sandbox.agent.episode import EpisodeLimits
from sandbox.agent.openenv import can_play
from sandbox.agent.openenv_server import EnvServer


class Command(BaseCommand):
    help = "Serves the admitted scenarios of a project to trainers, as an OpenEnv environment, until it is stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", required=True, help="slug of the project")
        parser.add_argument(
            "--host", default="127.0.0.1", help="address (default %(default)s); it asks for no password"
        )
        parser.add_argument("--port", type=int, default=8100, help="port (default %(default)s)")
        parser.add_argument("--sessions", type=int, default=settings.SANDBOX_SESSIONS, help="episodes at once")
        parser.add_argument("--max-turns", type=int, default=30, help="commands of one episode (default %(default)s)")
        parser.add_argument("--command-timeout", type=float, default=20.0, help="seconds (default %(default)s)")
        parser.add_argument("--episode-timeout", type=float, default=300.0, help="seconds (default %(default)s)")
        parser.add_argument("--rate-from", type=float, help="lowest kept rate of rollouts, 0 to 1: not too difficult")
        parser.add_argument("--rate-to", type=float, help="highest kept rate of rollouts, 0 to 1: not too easy")
        parser.add_argument("--require", default="", metavar="VERSION", help="refuse to serve another version")

    def handle(self, **options: object) -> None:
        server = make_server(options)
        host, port = str(options["host"]), int(str(options["port"]))
        try:
            asyncio.run(server.serve(host, port, lambda found: self._say(server, host, found)))
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        except OSError as error:
            raise CommandError(f"{host}:{port}: {error.strerror or error}") from None

    def _say(self, server: EnvServer, host: str, port: int) -> None:
        scenarios = f"{len(server.tasks.names)} scenarios, version {server.tasks.version}"
        self.stdout.write(f"{server.title} at http://{host}:{port}: {scenarios}")
        self.stdout.flush()


def _number(given: object, default: float) -> float:
    return default if given is None else float(str(given))


def make_server(options: dict[str, object]) -> EnvServer:
    """Raises `CommandError` if there is nothing to serve, or nothing to serve it with."""
    project = Project.objects.filter(slug=options["project"]).first()
    if project is None:
        raise CommandError(f"There is no project {options['project']!r}.")
    if not can_play():
        raise CommandError("The package websockets is missing: pip install 'winnow-curation[live]'.")
    try:
        rooms = backend()
    except NoSandbox as missing:
        raise CommandError(missing.detail) from None
    seconds = float(str(options["command_timeout"]))
    low, high = options["rate_from"], options["rate_to"]
    rate = None if low is None is high else Interval(_number(low, 0.0), _number(high, 1.0))
    tasks = AdmittedScenarios(project, limits_of(seconds), rate)
    if not tasks.names:
        of_rate = "" if rate is None else f" with a kept rate from {rate.low:g} to {rate.high:g}"
        raise CommandError(f"No scenario is admitted{of_rate}: only those that passed the gate are served.")
    if options["require"] and options["require"] != tasks.version:
        raise CommandError(f"The scenarios have version {tasks.version}, not {options['require']}.")
    most = min(int(str(options["sessions"])), settings.SANDBOX_SESSIONS)
    limits = EpisodeLimits(int(str(options["max_turns"])), float(str(options["episode_timeout"])))
    return EnvServer(
        title=f"winnow/{project.slug}",
        tasks=tasks,
        open_environment=lambda task: shell_environment(task, rooms, command_seconds=seconds),
        limits=limits,
        most=most,
    )
