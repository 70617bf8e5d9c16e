from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("exports", "0001_tables")]

    operations = [
        migrations.AddField(
            model_name="samplesignature",
            name="stored",
            field=models.BinaryField(default=b"", help_text="Digest of the session that has this hash.", max_length=16),
        ),
    ]
