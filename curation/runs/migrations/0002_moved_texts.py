from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("runs", "0001_tables")]

    operations = [
        migrations.AddField("run", "texts_moved_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField("run", "text_files", models.JSONField(default=list, editable=False)),
    ]
