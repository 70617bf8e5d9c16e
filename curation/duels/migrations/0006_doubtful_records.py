"""A record that may belong to another task says why, and whether a curator has cleared it."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("duels", "0005_bounds_in_points")]

    operations: ClassVar = [
        migrations.AddField(
            "pullrequest",
            "doubt",
            models.CharField(
                blank=True,
                default="",
                help_text="Why it may belong to another task; empty: no doubt.",
                max_length=400,
            ),
        ),
        migrations.AddField(
            "pullrequest",
            "doubt_cleared",
            models.BooleanField(default=False, help_text="A curator saw the doubt and uses the record."),
        ),
    ]
