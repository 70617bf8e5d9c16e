from django.conf import settings
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("exports", "0004_frozen_sample"),
    ]

    operations = [
        migrations.RenameModel("Recipe", "SavedRecipe"),
    ]
