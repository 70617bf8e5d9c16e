from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0002_delivery_log"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="previous_nonce",
            field=models.CharField(blank=True, default="", max_length=32),
        ),
        migrations.AddField(
            model_name="webhook",
            name="previous_until",
            field=models.DateTimeField(help_text="Until then messages are signed with the old secret too.", null=True),
        ),
    ]
