"""Lower bounds of stored verdicts become points, as the margin is: they were shares from -0.5 to 0.5."""

from typing import Any

from django.db import migrations

BOUNDS = ("lcb", "lcb_unclustered")


def convert(apps: Any, schema_editor: Any) -> None:
    runs = apps.get_model("runs", "Run")
    found = runs.objects.filter(kind__in=["duel", "judge", "rescore"], result__has_key="lcb")
    # Results with a basis are of the gate that computes points.
    for run in found.exclude(result__has_key="basis").iterator(500):
        run.result |= {name: 200 * run.result[name] for name in BOUNDS if run.result.get(name) is not None}
        run.save(update_fields=["result"])


class Migration(migrations.Migration):
    dependencies = [
        ("duels", "0004_imported_again"),
        ("runs", "0006_call_tool_calls"),
    ]

    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
