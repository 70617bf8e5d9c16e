import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

ROLES = [("viewer", "Viewer"), ("reviewer", "Reviewer"), ("curator", "Curator"), ("admin", "Admin")]


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("projects", "0004_removed_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="member",
            name="by_groups",
            field=models.BooleanField(default=False, help_text="The role came with groups of the provider at sign-in."),
        ),
        migrations.AddField(
            model_name="member",
            name="local_role",
            field=models.CharField(
                blank=True, choices=ROLES, default="", help_text="The role that groups replaced, if any.", max_length=10
            ),
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("issuer", "subject"), name="identity_once")],
            },
        ),
    ]
