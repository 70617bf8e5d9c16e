"""A digest of each prompt's content, also for the prompts of earlier imports."""

import hashlib

import orjson
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

BATCH = 500


def hash_contents(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Fill the column as `curation.duels.imports.prompts.content_hashes` does for new prompts."""
    prompt_model = apps.get_model("duels", "Prompt")
    batch = []
    for prompt in prompt_model.objects.select_related("text").filter(text__isnull=False).iterator(chunk_size=BATCH):
        digest = hashlib.blake2b(prompt.instance_id.encode("utf-8", "surrogatepass"), digest_size=16)
        for message in [*prompt.text.history, prompt.text.reference]:
            digest.update(b"\n" + orjson.dumps(message, option=orjson.OPT_SORT_KEYS))
        prompt.content_hash = digest.hexdigest()
        batch.append(prompt)
        if len(batch) >= BATCH:
            prompt_model.objects.bulk_update(batch, ["content_hash"])
            batch = []
    prompt_model.objects.bulk_update(batch, ["content_hash"])


class Migration(migrations.Migration):
    dependencies = [("duels", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="prompt",
            name="content_hash",
            field=models.CharField(
                blank=True, default="", help_text="Digest of the instance, the history and the turn.", max_length=32
            ),
        ),
        migrations.RunPython(hash_contents, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="prompt",
            index=models.Index(fields=["project", "content_hash"], name="prompt_by_content"),
        ),
    ]
