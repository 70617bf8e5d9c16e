from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("samples", "0006_assigned_samples")]

    operations = [
        migrations.AddField(
            "savedview",
            "list",
            models.CharField(default="samples", help_text="Name of the list, such as `runs`.", max_length=20),
        ),
        migrations.RemoveConstraint("savedview", "saved_view_once"),
        migrations.AddConstraint(
            "savedview", models.UniqueConstraint(fields=("project", "list", "name"), name="saved_view_once")
        ),
    ]
