from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("duels", "0010_move_scores"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="duel",
            name="duel_pair_once",
        ),
        migrations.RemoveConstraint(
            model_name="duel",
            name="duel_reference_once",
        ),
        migrations.AddField(
            model_name="duel",
            name="control",
            field=models.CharField(blank=True, default="", help_text="Kind of a control duel.", max_length=6),
        ),
        migrations.AddField(
            model_name="duel",
            name="expected",
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="duel",
            name="planted",
            field=models.TextField(blank=True, default="", help_text="A control's answer with the fault."),
        ),
        migrations.AddConstraint(
            model_name="duel",
            constraint=models.UniqueConstraint(
                condition=models.Q(("control", ""), ("king__isnull", False)),
                fields=("challenger", "king"),
                name="duel_pair_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="duel",
            constraint=models.UniqueConstraint(
                condition=models.Q(("control", ""), ("king__isnull", True)),
                fields=("challenger",),
                name="duel_reference_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="duel",
            constraint=models.UniqueConstraint(
                condition=models.Q(("control", ""), _negated=True),
                fields=("challenger", "control"),
                name="duel_control_once",
            ),
        ),
    ]
