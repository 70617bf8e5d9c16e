from django.db import migrations, models


class Migration(migrations.Migration):
    # The leases that are there are not held: the queue finds their samples, and passes those whose lease is live.

    dependencies = [("review", "0004_lease_ahead"), ("samples", "0006_leased")]

    operations = [
        migrations.AddField("lease", "held", models.BooleanField(db_default=False, default=True)),
        migrations.RemoveIndex("lease", "lease_lapsed"),
        migrations.AddIndex("lease", models.Index(fields=["held", "until", "sample"], name="lease_lapsed")),
    ]
