from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("samples", "0005_assigned_index")]

    operations = [
        migrations.RemoveIndex("sample", "sample_queue_assigned"),
        migrations.RemoveIndex("sample", "sample_queue_useful"),
        migrations.AddField(
            "sample",
            "leased",
            models.BooleanField(db_default=False, default=False, help_text="A reviewer has it open."),
        ),
        migrations.AddIndex(
            "sample",
            models.Index(fields=["project", "status", "assigned", "leased", "priority", "id"], name="sample_queue_free"),
        ),
        migrations.AddIndex(
            "sample",
            models.Index(
                fields=["project", "status", "assigned", "leased", "predicted_key", "id"], name="sample_queue_useful"
            ),
        ),
    ]
