from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('trajectories', '0007_pair_advantages'),
    ]

    operations = [
        migrations.AlterField(
            model_name='trajectory',
            name='outcome',
            field=models.CharField(choices=[('solved', 'Solved'), ('correct_panic', 'Rightly gave up'), ('wrong_terminal', 'Wrong ending'), ('checker_failed', 'Checker failed'), ('no_terminal', 'Never ended'), ('format_error', 'Format error'), ('timeout', 'Timeout'), ('infra_error', 'Infrastructure error'), ('failed', 'Failed'), ('error', 'Error of the machine'), ('unknown', 'Unknown')], max_length=14),
        ),
    ]
