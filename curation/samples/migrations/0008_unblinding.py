import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('samples', '0007_newest_of_queue'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameModel(old_name='Look', new_name='Unblinding'),
        migrations.AlterField(
            model_name='unblinding',
            name='sample',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='unblindings', to='samples.sample'),
        ),
        migrations.AlterField(
            model_name='unblinding',
            name='user',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='unblindings', to=settings.AUTH_USER_MODEL),
        ),
    ]
