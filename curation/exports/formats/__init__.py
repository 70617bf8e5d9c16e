"""Formats and trainers by name. A module ends with its formats, and that of a trainer with a `Trainer`."""

from curation.exports.formats import atif, axolotl, llamafactory, openai, reinforcement, trl, verl
from curation.exports.formats.row import Format, Trainer

FORMATS: dict[str, Format] = {
    form.name: form
    for module in (trl, openai, llamafactory, axolotl, verl, reinforcement, atif)
    for form in module.FORMATS
}
# Formats of one trainer alone always have its configuration beside them.
TRAINERS: dict[str, Trainer] = {
    trainer.name: trainer
    for trainer in (trl.TRAINER, llamafactory.TRAINER, axolotl.TRAINER, openai.OPENAI, openai.TOGETHER, verl.TRAINER)
}
