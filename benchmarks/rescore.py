"""Scores without model calls: a rescore run, and another panel or other thresholds that count.

    WINNOW_DATA=/tmp/bench DJANGO_SETTINGS_MODULE=config.settings python -m benchmarks.rescore [--duels 5000]

Makes duels with the verdicts of three judges in both orders, in the empty database that the environment names. Exits
with 1 where a step takes 2 s or more of processor time.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable

import django

django.setup()

from django.contrib.auth.models import User  # noqa: E402 - models exist after setup
from django.core.management import call_command  # noqa: E402

from curation.duels.models import Answer, AnswerText, Duel, Order, Prompt, PromptText, Session, Verdict  # noqa: E402
from curation.duels.score.models import ScorePanel  # noqa: E402
from curation.projects.access import Access  # noqa: E402
from curation.projects.models import SCOPES_OF_ROLE, Project, Role  # noqa: E402
from curation.projects.settings.change import change_project  # noqa: E402
from curation.projects.settings.dependents import preview_change  # noqa: E402
from curation.runs.engine.worker import drive  # noqa: E402
from curation.runs.launch import launch  # noqa: E402
from curation.runs.models import LIVE  # noqa: E402
from judging.panel.rubric import DIMENSIONS  # noqa: E402

LIMIT_S = 2.0
JUDGES = ("judge-a", "judge-b", "judge-c")


def fill(project: Project, duels: int) -> None:
    draw = random.Random(1)
    prompts = Prompt.objects.bulk_create(
        Prompt(
            project=project,
            source="t",
            row_offset=n,
            turn_index=2,
            instance_id=f"i-{n // 5}",
            repo=f"r-{n % 40}",
            tokens=9,
        )
        for n in range(duels)
    )
    session = Session.objects.create(project=project, messages=[])
    PromptText.objects.bulk_create(PromptText(prompt=p, session=session, at=0, reference={}) for p in prompts)
    sides = {}
    for side in ("king", "challenger"):
        sides[side] = Answer.objects.bulk_create(
            Answer(prompt=p, side=side, model=side, fingerprint=side * 3, instructions_hash="0" * 64) for p in prompts
        )
        AnswerText.objects.bulk_create(
            AnswerText(answer=a, text="THOUGHT: so.\n\n```bash\nls\n```") for a in sides[side]
        )
    made = Duel.objects.bulk_create(
        Duel(project=project, prompt=p, king=k, challenger=c)
        for p, k, c in zip(prompts, sides["king"], sides["challenger"], strict=True)
    )
    verdicts = []
    for duel in made:
        for judge in JUDGES:
            for order, better in ((Order.KING_FIRST, 2), (Order.CHALLENGER_FIRST, 1)):
                dimensions = {name: draw.choices((better, 0, 3 - better), (5, 2, 2))[0] for name in DIMENSIONS}
                verdicts.append(
                    Verdict(
                        duel=duel,
                        judge=judge,
                        order=order,
                        fingerprint=judge * 9,
                        instructions_hash="0" * 64,
                        parsed=True,
                        dimensions=dimensions,
                    )
                )
    Verdict.objects.bulk_create(verdicts)


def measure(name: str, work: Callable[[], object]) -> float:
    wall, busy = time.perf_counter(), time.process_time()
    work()
    wall, busy = time.perf_counter() - wall, time.process_time() - busy
    print(f"{name:<42} {wall:6.2f} s, {busy:6.2f} s of processor", flush=True)
    return busy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--duels", type=int, default=5000)
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("bench")
    project = Project.objects.create(slug="bench", name="Bench", settings_json={"panel": {"judges": list(JUDGES)}})
    access = Access(user, project, Role.ADMIN, SCOPES_OF_ROLE[Role.ADMIN])
    fill(project, given.duels)

    def rescore(**params: object) -> None:
        run = launch(project=project, kind="rescore", params=params, user=None)
        while run.state in LIVE:
            drive(run.pk)
            run.refresh_from_db()
        assert run.state == "succeeded" and run.result["done"] == given.duels, (run.state, run.error)

    measure("first scores, with new samples", rescore)
    times = [
        measure("rescore of the counting panel", rescore),
        measure("rescore with two of the judges", lambda: rescore(judges=["judge-a", "judge-b"])),
    ]
    other = ScorePanel.objects.latest("id").digest
    times += [
        measure("preview of another panel", lambda: preview_change(project, {"panel": {"counting": other}})),
        measure("another panel counts", lambda: change_project(access=access, settings={"panel": {"counting": other}})),
        measure(
            "new thresholds count", lambda: change_project(access=access, settings={"thresholds": {"final": 70.0}})
        ),
    ]
    return int(max(times) >= LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
