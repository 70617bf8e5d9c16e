from django.db import migrations, models


def mark_what_is_known(apps, schema_editor):
    """Of an export from before, other reasons are only in its `excluded.jsonl`."""
    rows = apps.get_model("exports", "FrozenRow").objects.using(schema_editor.connection.alias)
    rows.filter(models.Q(duplicate_of__isnull=False) | ~models.Q(over_cap="")).update(skipped=True)


class Migration(migrations.Migration):
    dependencies = [
        ("exports", "0005_rounds"),
        ("samples", "0007_views_of_lists"),
    ]

    operations = [
        migrations.AddField(
            model_name="frozenrow",
            name="skipped",
            field=models.BooleanField(
                db_default=False, default=False, help_text="Once the export is ready: it has no row in the files."
            ),
        ),
        migrations.RunPython(mark_what_is_known, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="frozenrow",
            index=models.Index(
                condition=models.Q(("skipped", False)), fields=["export", "sample_id"], name="frozen_exported"
            ),
        ),
    ]
