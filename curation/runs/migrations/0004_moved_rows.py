from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("runs", "0003_token_data")]

    operations = [
        migrations.AddField("run", "rows_moved_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField("run", "moved", models.JSONField(editable=False, null=True)),
    ]
