"""Erase rows with everything that references them, in batches: no long transaction, no long list in memory.

References to a row are read from the models, so a new model is never forgotten. Erasing is repeatable: after a kill,
the next call goes on with the remaining rows.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.apps import apps
from django.core.files.storage import default_storage
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import CASCADE, SET_NULL, ForeignKey, Model, QuerySet
from django.dispatch import Signal


def delete_folder(folder: str) -> None:
    """Delete a folder with everything in it; nothing if there is none."""
    folder = folder.rstrip("/")
    try:
        folders, names = default_storage.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        default_storage.delete(f"{folder}/{name}")
    for inner in folders:
        delete_folder(f"{folder}/{inner}")
    default_storage.delete(folder)


BATCH = 1000
# Called in the transaction of each batch, with the model's label and the number of rows.
OnBatch = Callable[[str, int], None]
# Sent with the `ids` of each batch before its rows are deleted, and again if the process is killed in between. Its
# receivers delete the data of the rows outside the database, such as files.
pre_erase = Signal()


def erase(rows: QuerySet[Any], on_batch: OnBatch, *, go_on: Callable[[], None]) -> None:
    """Delete the rows and those that reference them, as the `on_delete` of each foreign key says.

    While a key with RESTRICT references a row, the database refuses to delete it. `go_on` is called between
    transactions and may raise to stop.
    """
    model: type[Model] = rows.model
    while ids := list(rows.order_by().values_list("pk", flat=True)[:BATCH]):
        pre_erase.send(model, ids=ids)
        for key in references_to(model):
            referring = key.model._base_manager.filter(**{f"{key.name}__in": ids})
            # A row that references its own table (a revision's parent) has the same owner and goes with that.
            if key.remote_field.on_delete is SET_NULL or key.model is model:
                _set_null(referring, key.name, go_on)
            elif key.remote_field.on_delete is CASCADE:
                erase(referring, on_batch, go_on=go_on)
        with transaction.atomic():
            # Nothing references these rows any more, so Django need not look for references again.
            on_batch(model._meta.label, model._base_manager.filter(pk__in=ids)._raw_delete(DEFAULT_DB_ALIAS))
        go_on()


def _set_null(rows: QuerySet[Any], name: str, go_on: Callable[[], None]) -> None:
    while ids := list(rows.order_by().values_list("pk", flat=True)[:BATCH]):
        rows.model._base_manager.filter(pk__in=ids).update(**{name: None})
        go_on()


@cache
def models_from_top() -> tuple[type[Model], ...]:
    """All models, those that reference others first: from the top app to the lowest, and in an app the last first."""
    models = (reversed(list(app.get_models(include_auto_created=True))) for app in apps.get_app_configs())
    return tuple(model for of_app in models for model in of_app)


@cache
def references_to(model: type[Model]) -> "tuple[ForeignKey[Any, Any], ...]":
    """The foreign keys to `model` in the order of their models: rows are deleted before a key of theirs is nulled."""
    fields = (field for other in models_from_top() for field in other._meta.local_fields)
    return tuple(field for field in fields if isinstance(field, ForeignKey) and field.related_model is model)
