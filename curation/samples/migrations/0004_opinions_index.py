from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("samples", "0003_predicted_approval")]

    operations = [
        migrations.RemoveIndex("sample", "sample_opinions"),
        migrations.AddIndex(
            "sample",
            models.Index(fields=["project", "opinions"], name="sample_opinions", condition=models.Q(opinions__gt=0)),
        ),
    ]
