"""The rubric: of a kind of data or a project's own, the same for judges and people."""

import json

import pytest
from django.test import Client

from curation.duels.models import Verdict
from curation.duels.score.models import Score
from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Role
from curation.samples.models import Sample
from tests.duels.running import Models, make_arena, run_to_end
from tests.factories import make_bearer, make_member, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)
OWN = "taste: Which answer would you keep?\nbrevity: Which one is shorter?\n"


def prefers_challenger(*names: str) -> str:
    return json.dumps({**dict.fromkeys(names, 1), "reason": "as written"})


def test_a_projects_own_rubric_is_asked_scored_and_shown_to_people(client: Client, models: Models) -> None:
    def judge(request: CompletionRequest) -> str:
        text = str(request.messages[-1]["content"])
        first = 1 if text.index("CHALLENGER") < text.index("KING") else 2
        return json.dumps({"taste": first, "brevity": 0, "reason": "as written"})

    models.says["judge-a"] = judge
    project, _ = make_arena(prompts=1, judges=("judge-a",))
    ada = make_member(project, make_user("ada"), Role.ADMIN)
    client.force_login(ada)
    page = f"/p/{project.slug}/settings/instructions/rubric/"
    refused = client.post(page, {"text": "taste: A\ntaste: B", "version": 0})
    assert refused.status_code == 422 and "Line 2 has the name" in refused.content.decode()
    assert client.post(page, {"text": OWN, "version": 0}).status_code == 302
    run_to_end(project)
    system, user = (str(message["content"]) for message in models.requests("judge-a")[0].messages)
    assert "- taste: Which answer would you keep?" in system and "correctness" not in system
    assert '{"taste": 0|1|2, "brevity": 0|1|2, "reason"' in user
    score = Score.objects.get()
    assert (score.score, score.metrics) == (75.0, {"taste": 100.0, "brevity": 50.0})
    client.force_login(make_member(project, role=Role.VIEWER))
    sample = client.get(f"/p/{project.slug}/samples/{Sample.objects.get().pk}/").content.decode()
    assert "Which answer would you keep?" in sample and "THOUGHT plus" not in sample

    # Another rubric is another panel: judges read again, and the weights name its dimensions.
    calls = len(models.requests("judge-a"))
    headers = make_bearer(ada)
    patch = {"settings": {"panel": {"weights": {"correctness": 2}}}}
    answer = client.patch(f"/api/v1/projects/{project.slug}", patch, content_type="application/json", headers=headers)
    assert answer.status_code == 422 and "dimension correctness" in answer.json()["detail"]
    client.force_login(ada)
    client.post(page, {"text": OWN + "safety: Which one is safer?", "version": 1})
    models.says["judge-a"] = lambda request: prefers_challenger("taste", "brevity", "safety")
    run_to_end(project)
    assert len(models.requests("judge-a")) == calls + 2
    assert {len(row) for row in Verdict.objects.values_list("dimensions", flat=True)} == {2, 3}


def test_the_kind_of_data_selects_rubric_and_instructions(client: Client, models: Models) -> None:
    names = ("helpfulness", "truth", "context", "clarity", "safety")
    models.says["judge-a"] = lambda request: prefers_challenger(*names)
    project, _ = make_arena(prompts=1, judges=("judge-a",), settings={"data": {"kind": "chat"}})
    run_to_end(project)
    sent = models.text_sent("judge-a") + models.text_sent("king") + models.text_sent("challenger")
    assert "last message of a conversation" in sent and "coding agent" not in sent
    assert "<record>" not in sent and "fenced block" not in sent
    assert set(Score.objects.get().metrics) == set(names)


@pytest.mark.parametrize("kind", ["turns", "trajectories", "chat", "preferences"])
def test_each_kind_has_a_rubric_that_can_be_read(client: Client, kind: str) -> None:
    project = make_project(settings_json={"data": {"kind": kind}})
    headers = make_bearer(make_member(project, make_user(), Role.VIEWER))
    texts = client.get(f"/api/v1/projects/{project.slug}/instructions", headers=headers).json()
    [rubric] = [text["text"] for text in texts if text["name"] == "rubric"]
    assert ("THOUGHT" in rubric) == (kind == "turns")
