from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("review", "0003_guarantee")]

    operations = [
        migrations.AddField(
            model_name="lease", name="ahead", field=models.BooleanField(db_default=False, default=False)
        )
    ]
