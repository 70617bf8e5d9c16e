import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ACTIONS = [
    ("approve", "Approve"),
    ("reject", "Reject"),
    ("refine", "Refine"),
    ("skip", "Skip"),
    ("flag", "Flag"),
    ("queue", "Send to queue"),
    ("undo", "Undo"),
    ("reopen", "Reopen"),
]


def list_earlier_batches(apps, schema_editor):
    """The audit log has every bulk action so far, and how many samples each of its undos restored."""
    entries = apps.get_model("projects", "AuditEntry").objects.exclude(project=None).exclude(actor=None).order_by("id")
    batch = apps.get_model("review", "Batch")
    for action, _ in ACTIONS:
        for entry in entries.filter(action=f"sample.bulk_{action}").exclude(action="sample.bulk_undo").iterator():
            values = {"action": action, "changed": entry.data.get("changed", 0), "query": entry.data.get("query", "")}
            row, _ = batch.objects.get_or_create(
                key=entry.subject[:32],
                defaults={"project_id": entry.project_id, "reviewer_id": entry.actor_id, **values},
            )
            batch.objects.filter(pk=row.pk).update(created_at=entry.created_at)
    for entry in entries.filter(action="sample.bulk_undo").iterator():
        restored = models.F("restored") + entry.data.get("restored", 0)
        batch.objects.filter(key=entry.subject).update(restored=restored)


class Migration(migrations.Migration):
    dependencies = [
        ("projects", "0004_removed_runs"),
        ("review", "0006_drafts_of_both_answers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            "Batch",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="projects.project",
                    ),
                ),
                ("key", models.CharField(max_length=32, unique=True)),
                (
                    "reviewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="batches",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("action", models.CharField(choices=ACTIONS, max_length=8)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "query",
                    models.TextField(
                        blank=True, default="", help_text="The filter, as a URL query; empty for a selection."
                    ),
                ),
                ("changed", models.PositiveIntegerField(default=0)),
                ("restored", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"indexes": [models.Index(fields=["project", "-id"], name="batch_list")]},
        ),
        migrations.RunPython(list_earlier_batches, migrations.RunPython.noop),
    ]
