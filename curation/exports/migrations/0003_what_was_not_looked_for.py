from django.db import migrations


def correct(apps, schema_editor):
    """Earlier versions stored 0 paraphrases for an export that looked for none."""
    exports = apps.get_model("exports", "Export").objects.filter(counts__contamination__levels__has_key="paraphrase")
    for export in exports.iterator(chunk_size=100):
        if export.counts["contamination"].get("embedded") is None:
            del export.counts["contamination"]["levels"]["paraphrase"]
            export.save(update_fields=["counts"])


class Migration(migrations.Migration):
    dependencies = [("exports", "0002_signature_stored")]

    operations = [migrations.RunPython(correct, migrations.RunPython.noop)]
