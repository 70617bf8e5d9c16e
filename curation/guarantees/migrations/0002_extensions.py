from django.db import migrations, models


def fill(apps, schema_editor):
    """Earlier audits gave people all that they drew. Samples are given back in the order of their ids now, from 0 on."""
    apps.get_model("guarantees", "Audit").objects.update(drawn=models.F("size"))
    withdrawn = apps.get_model("guarantees", "Guarantee").objects.filter(withdrawn_at__isnull=False)
    withdrawn.filter(finished=False).update(cursor=0)


class Migration(migrations.Migration):
    dependencies = [
        ("guarantees", "0001_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="audit",
            name="drawn",
            field=models.PositiveIntegerField(default=0),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="audit",
            name="extensions",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="audit",
            name="spent",
            field=models.FloatField(
                db_default=0.0, default=0.0, help_text="δ of earlier audits of the same samples, in all."
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
