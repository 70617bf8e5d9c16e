"""Indexes for every filter and order of the list, and none twice."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0001_initial"),
        ("runs", "0001_initial"),
        ("samples", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="sample",
            name="sample_queue",
        ),
        migrations.RemoveIndex(
            model_name="sample",
            name="sample_flagged",
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "flags", "id"], name="sample_list_flags"),
        ),
        migrations.AlterField(
            model_name="sample",
            name="decided_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="decided_samples",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="sample",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="samples",
                to="projects.project",
            ),
        ),
        migrations.AlterField(
            model_name="sample",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="samples",
                to="runs.run",
            ),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "priority", "id"], name="sample_list_priority"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "source", "id"], name="sample_list_source"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "model", "id"], name="sample_list_model"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "action_style", "id"], name="sample_list_style"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["run", "id"], name="sample_list_run"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(
                condition=models.Q(("decided_by__isnull", False)),
                fields=["decided_by", "id"],
                name="sample_list_reviewer",
            ),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(
                condition=models.Q(("kind", "trajectory")), fields=["project", "kind", "id"], name="sample_trajectories"
            ),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "bucket", "score_key", "id"], name="sample_bucket_score"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "bucket", "priority", "id"], name="sample_bucket_priority"),
        ),
        migrations.AddIndex(
            model_name="sample",
            index=models.Index(fields=["project", "status", "priority", "id"], name="sample_queue"),
        ),
    ]
