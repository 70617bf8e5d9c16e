"""What the second reader found in an answer."""

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("duels", "0007_imported_answers")]

    operations: ClassVar = [
        migrations.AddField(
            "answer",
            "reader_flag",
            models.BooleanField(default=False, help_text="The second reader found a leak."),
        ),
        migrations.AddField(
            "answer",
            "reading",
            models.JSONField(default=dict, help_text="What the second reader found; empty if it did not read."),
        ),
    ]
