from django.db import migrations


def correct(apps, schema_editor):
    """Earlier versions stored a flip rate of 0 for a judge that read no duel in both orders, and an empty `leak_check`
    for a run without answers."""
    runs, panels = apps.get_model("runs", "Run").objects, apps.get_model("duels", "ScorePanel").objects
    for run in runs.filter(result__has_key="judges").iterator(chunk_size=100):
        orders = [len(found) for found in panels.filter(scores__run=run).values_list("orders", flat=True)]
        in_one_order = bool(orders) and max(orders) == 1
        for judge in run.result["judges"]:
            if in_one_order or not judge.get("n"):
                judge |= {"flip_rate": None, "flips": {}}
        run.save(update_fields=["result"])
    for run in runs.filter(result__leak_check="").iterator(chunk_size=100):
        run.result["leak_check"] = "no answers"
        run.save(update_fields=["result"])


class Migration(migrations.Migration):
    dependencies = [("duels", "0003_trial_tasks"), ("runs", "0004_moved_rows")]

    operations = [migrations.RunPython(correct, migrations.RunPython.noop)]
