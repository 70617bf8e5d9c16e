"""Tests that begin with the same world: each has its rows and files, and sees nothing of another test."""

import threading

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from curation.projects.models import Project
from curation.samples.models import Sample
from tests.factories import make_duel, make_project
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
made: list[str] = []


@world
def project(patched: pytest.MonkeyPatch) -> Project:
    made.append("acme")
    default_storage.save("note.txt", ContentFile(b"as made"))
    project = make_project("acme")
    make_duel(project, body="quantise the totals")
    return project


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_each_begins_with_what_was_made_once(project: Project, name: str) -> None:
    assert made == ["acme"]
    assert (project.name, Project.objects.get().name) == ("acme", "acme")
    with default_storage.open("note.txt") as opened:
        assert opened.read() == b"as made"

    def change() -> None:
        Project.objects.update(name=name)
        Sample.objects.all().delete()
        connection.close()

    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
    default_storage.delete("note.txt")
    project.name = name
    assert Project.objects.get().name == make_project(name).name == name


def test_one_without_the_world_finds_nothing() -> None:
    assert not Project.objects.exists()
