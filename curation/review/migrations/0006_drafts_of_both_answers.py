from django.db import migrations, models

PICKS = [("candidate", "Challenger"), ("opponent", "King"), ("draw", "Draw")]


class Migration(migrations.Migration):
    dependencies = [("review", "0005_suggestions")]

    operations = [
        migrations.AddField("draft", "pick", models.CharField(blank=True, choices=PICKS, default="", max_length=9)),
        migrations.AddField("draft", "king_text", models.TextField(blank=True, default="")),
        migrations.AddField("draft", "king_note", models.TextField(blank=True, default="")),
    ]
