"""The list of disputed samples shows the text that each decision keeps."""

import html

import pytest
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel, Opponent
from curation.projects.models import Role
from curation.review.decisions.decide import decide
from tests.factories import make_duel, make_member, make_project
from tests.review.rows import reviewer_of, sample_of

pytestmark = pytest.mark.django_db


def test_the_kept_text_is_that_of_the_source_s_own_turn_and_of_a_draw(client: Client) -> None:
    project = make_project("billing", settings_json={"review": {"overlap": 2}})
    duel = make_duel(project, challenger="THOUGHT: I list the folder.")
    Duel.objects.filter(pk=duel.pk).update(king=None, opponent=Opponent.REFERENCE)
    calls = [{"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls -a"}'}}]
    duel.prompt.text.reference = {"role": "assistant", "content": "I look around.", "tool_calls": calls}
    duel.prompt.text.save()
    sample = sample_of(duel)
    decide(access=reviewer_of(project), sample_id=sample.pk, action="approve", preference="king")
    decide(access=reviewer_of(project), sample_id=sample.pk, action="approve", preference="draw")
    client.force_login(make_member(project, role=Role.CURATOR))
    page = client.get(reverse("dispute-list", args=["billing"])).content.decode()
    texts = [html.unescape(part.partition("</pre>")[0]) for part in page.split("<pre>")[1:]]
    assert len(texts) == 2 and texts[0].startswith("I look around.") and "ls -a" in texts[0]
    assert "Approve · reference" in page and "· king" not in page
    assert "role" not in texts[0] and texts[1] == "THOUGHT: I list the folder."
