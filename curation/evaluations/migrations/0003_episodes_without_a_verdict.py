from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("evaluations", "0002_figures_of_an_environment")]

    operations = [migrations.AddField("episode", "judged", models.BooleanField(default=True))]
