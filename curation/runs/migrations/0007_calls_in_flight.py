from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_call_tool_calls"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="call",
            index=models.Index(
                condition=models.Q(("status", "sent")), fields=["project", "content_hash"], name="call_in_flight"
            ),
        ),
    ]
