"""The rows of `benchmarks.review`, as JSON.

`fill` makes a project of undecided samples with duels and prints the clients' tokens, `audit` compares the log with the
clients' responses. `long` adds transcripts of 5,000 turns and of 5 MB, last in the queue, and signs the first reviewer
in.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402 - models exist after setup
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402

from curation.duels.models import Answer, AnswerText, Duel, Prompt, PromptText, Session  # noqa: E402
from curation.projects.access import Principal  # noqa: E402
from curation.projects.models import Member, Project, Role, Scope  # noqa: E402
from curation.projects.tokens.issue import create_token  # noqa: E402
from curation.review.models import Decision, Lease  # noqa: E402
from curation.samples.models import Sample  # noqa: E402
from curation.trajectories.models import Trajectory, TrajectoryText  # noqa: E402
from curation.trajectories.shell import steps_of  # noqa: E402

CHUNK = 10_000
# Only what the clients can reach in a run needs both answers; the rest is there to make the tables large.
WITH_DUELS = 5_000


def fill(samples: int, clients: int) -> dict[str, object]:
    call_command("migrate", verbosity=0)
    call_command("flush", verbosity=0, interactive=False)
    project = Project.objects.create(slug="bench", name="Bench")
    for start in range(0, samples, CHUNK):
        count = min(CHUNK, samples - start)
        Sample.objects.bulk_create(
            Sample(project=project, score=70.0, score_key=70.0, bucket="refined", priority=(start + n) / 1000)
            for n in range(count)
        )
    _duels(project, list(Sample.objects.order_by("priority", "id")[:WITH_DUELS]))
    tokens = []
    for number in range(clients):
        user = User.objects.create(username=f"reviewer-{number}")
        Member.objects.create(project=project, user=user, role=Role.REVIEWER)
        tokens.append(create_token(Principal(user, frozenset(Scope)), scopes=[Scope.READ, Scope.REVIEW])[1])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return {"tokens": tokens, "ideal": _ideal(Sample.objects.order_by("-id").values_list("id", flat=True)[:500])}


def _duels(project: Project, samples: list[Sample], *, first_row: int = 0) -> None:
    prompts = Prompt.objects.bulk_create(
        Prompt(project=project, source="bench", row_offset=first_row + n, turn_index=2, tokens=500)
        for n in range(len(samples))
    )
    history = [{"role": "user", "content": "Fix the totals. " * 100}]
    sessions = Session.objects.bulk_create(Session(project=project, messages=history) for _ in prompts)
    PromptText.objects.bulk_create(
        PromptText(prompt=p, session=s, at=1, reference=history[0]) for p, s in zip(prompts, sessions, strict=True)
    )
    sides = {
        side: Answer.objects.bulk_create(
            Answer(prompt=p, side=side, model=side, fingerprint=side, instructions_hash="") for p in prompts
        )
        for side in ("king", "challenger")
    }
    for answers in sides.values():
        AnswerText.objects.bulk_create(AnswerText(answer=a, text="THOUGHT: look.\n\n```bash\nls\n```") for a in answers)
    Duel.objects.bulk_create(
        Duel(project=project, prompt=prompt, sample=sample, king=king, challenger=challenger)
        for prompt, sample, king, challenger in zip(prompts, samples, sides["king"], sides["challenger"], strict=True)
    )


def _ideal(ids: Iterable[int]) -> float:
    """Conditional updates a second, one transaction each: what no decision can be faster than."""
    rows = list(Sample.objects.filter(pk__in=ids).values_list("id", "version"))
    started = time.perf_counter()
    for pk, version in rows:
        Sample.objects.filter(pk=pk, version=version).update(version=version)
    return len(rows) / (time.perf_counter() - started)


def long() -> dict[str, object]:
    project = Project.objects.get()
    line = "the same line of an output, 64 characters, again and again....\n"
    ends = {"turns": ([line] * 5_000, "turns"), "output": (["task", "cat log", line * 82_000, "done"], "output")}
    found: dict[str, object] = {"session": _session()}
    for name, (texts, kind) in ends.items():
        samples = Sample.objects.bulk_create(Sample(project=project, priority=1e9) for _ in range(2))
        _duels(project, samples[:1], first_row=samples[0].pk + WITH_DUELS)
        chat = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
        session = Session.objects.create(project=project, messages=chat)
        PromptText.objects.filter(prompt__duels__sample=samples[0]).update(session=session, at=len(chat))
        kinds = ["orientation", *("action", "output") * (len(texts) // 2)]
        turns = [{"kind": of, "text": text, "prompt": "$ "} for of, text in zip(kinds, texts, strict=False)]
        row = Trajectory.objects.create(
            project=project, sample=samples[1], model="operator", bundle_sha256="", task=kind, outcome="solved"
        )
        TrajectoryText.objects.create(trajectory=row, steps=steps_of(turns))
        Sample.objects.filter(pk=samples[1].pk).update(kind="trajectory")
        found |= {name: samples[0].pk, "trajectory" if name == "turns" else "output_of_trajectory": samples[1].pk}
    return found


def _session() -> str:
    client = Client()
    client.force_login(User.objects.get(username="reviewer-0"))
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def audit(answered: Path) -> dict[str, object]:
    """Print the differences; `answered` has a pair of client and sample for each decision that was answered with
    201."""
    log = Decision.objects.values_list("reviewer__username", "sample", "action", "version")
    expected = {
        (f"reviewer-{client}", int(sample), "approve", 1) for client, sample in json.loads(answered.read_text())
    }
    decided = {sample for _, sample, _, _ in expected}
    wrong = {
        "a decision twice in the log": len(log) != len(set(log)),
        "a sample with two decisions": len(log) != len({sample for _, sample, _, _ in log}),
        "the log is not what was answered": set(log) != expected,
        "a sample that was decided and is not approved once": set(
            Sample.objects.exclude(status="pending", version=1).values_list("id", "status", "version")
        )
        != {(sample, "approved", 2) for sample in decided},
        "a lease of a decided sample": Lease.objects.filter(sample__in=decided).exists(),
    }
    return {"wrong": [name for name, is_wrong in wrong.items() if is_wrong]}


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    if command == "audit":
        done = audit(Path(words[0]))
    elif command == "long":
        done = long()
    else:
        done = fill(*map(int, words))
    print(json.dumps(done))
