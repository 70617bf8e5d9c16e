"""Formats by name. A new one is a module with a `Format` at its end and an entry in `FORMATS`."""

from curation.exports.formats import dpo, sft_messages
from curation.exports.formats.row import Format

FORMATS: dict[str, Format] = {form.name: form for form in (sft_messages.FORMAT, dpo.FORMAT)}
