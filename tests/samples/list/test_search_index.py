"""The search index survives migrations that alter its table."""

import pytest
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.db import connection, models

from curation.samples.list.search import matching
from curation.samples.models import Sample, SampleText
from tests.factories import make_project, make_sample

pytestmark = pytest.mark.django_db(transaction=True)


def found(text: str) -> int:
    return matching(Sample.objects.all(), text).count()


def write_text(sample: Sample, body: str) -> None:
    SampleText.objects.filter(sample=sample).delete()
    SampleText.objects.create(sample=sample, body=body)


def index_warnings() -> list[str]:
    return [str(message.msg) for message in run_checks(tags=[Tags.database], databases=["default"])]


def test_an_altered_table_keeps_its_search() -> None:
    project = make_project()
    write_text(make_sample(project), "before the change")
    constraint = models.CheckConstraint(condition=models.Q(sample_id__gt=0), name="sample_text_positive")
    with connection.schema_editor() as editor:
        editor.add_constraint(SampleText, constraint)  # SQLite makes the table again for this
    try:
        if connection.vendor == "sqlite":
            assert any("sample_search_insert" in warning for warning in index_warnings())
        call_command("migrate", verbosity=0)
        assert index_warnings() == []
        write_text(make_sample(project), "after the change")
        assert (found("before"), found("after"), found("change")) == (1, 1, 2)
    finally:
        with connection.schema_editor() as editor:
            editor.remove_constraint(SampleText, constraint)
        call_command("migrate", verbosity=0)


def test_nothing_is_created_twice() -> None:
    call_command("migrate", verbosity=0)
    assert index_warnings() == []
