from django.db import migrations

SHARES = ("exit", "panic", "empty_queue", "blocked")


def correct(apps, schema_editor):
    """Earlier versions stored shares of 0 for a rollout that keeps nothing."""
    for run in apps.get_model("runs", "Run").objects.filter(result__balance__kept=0).iterator(chunk_size=100):
        run.result["balance"] |= dict.fromkeys(SHARES)
        run.save(update_fields=["result"])


class Migration(migrations.Migration):
    dependencies = [("trajectories", "0009_lists_by_instance_and_repo"), ("runs", "0004_moved_rows")]

    operations = [migrations.RunPython(correct, migrations.RunPython.noop)]
