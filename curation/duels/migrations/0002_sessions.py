import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('duels', '0001_tables'),
        ('projects', '0001_tables'),
        ('runs', '0001_tables'),
        ('trajectories', '0003_imported'),
    ]

    operations = [
        migrations.CreateModel(
            name='Session',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(blank=True, default='', max_length=32)),
                ('messages', models.JSONField(null=True)),
                ('tools', models.JSONField(default=list)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='projects.project')),
                ('run', models.ForeignKey(help_text='The import that created it.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('trajectory', models.ForeignKey(null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='trajectories.trajectory')),
            ],
            options={
                'indexes': [models.Index(fields=['project', 'digest'], name='session_by_digest')],
            },
        ),
        migrations.RemoveField(
            model_name='prompttext',
            name='history',
        ),
        migrations.RemoveField(
            model_name='prompttext',
            name='tools',
        ),
        # Without defaults: a database with prompts of an earlier version cannot be migrated.
        migrations.AddField(
            model_name='prompttext',
            name='session',
            field=models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='prompt_texts', to='duels.session'),
        ),
        migrations.AddField(
            model_name='prompttext',
            name='at',
            field=models.PositiveIntegerField(help_text="Number of the session's messages before the turn."),
        ),
    ]
