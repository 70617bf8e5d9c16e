from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("samples", "0006_leased")]

    operations = [
        migrations.AddIndex(
            "sample",
            models.Index(fields=["project", "status", "assigned", "leased", "id"], name="sample_queue_newest"),
        ),
    ]
