from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("evaluations", "0001_tables")]

    operations = [
        migrations.AlterField("episode", "max_progress", models.FloatField(null=True)),
        migrations.AlterField("episode", "total_reward", models.FloatField(null=True)),
        migrations.AlterField("episode", "terminal_reward", models.FloatField(null=True)),
    ]
