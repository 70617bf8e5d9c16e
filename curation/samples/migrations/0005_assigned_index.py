from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("samples", "0004_opinions_index")]

    operations = [
        migrations.AddIndex(
            "sample",
            models.Index(fields=["project", "status"], name="sample_assigned", condition=models.Q(assigned=True)),
        ),
    ]
