"""Erase rows with everything that references them, in batches: no long transaction, no long list in memory.

References to a row are read from the models, so a new model is never forgotten. Erasing is repeatable: after a kill,
the next call goes on with the remaining rows.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import SET_NULL, ForeignKey, Model, QuerySet
from django.db.models.sql import DeleteQuery

BATCH = 1000
# Called in the transaction of each batch, with the model's label and the number of rows.
OnBatch = Callable[[str, int], None]
Cleaner = Callable[[Sequence[int]], None]
_cleaners: dict[type[Model], list[Cleaner]] = {}


def cleans_up(model: type[Model]) -> Callable[[Cleaner], Cleaner]:
    """Register a function that removes the data of `model`'s rows outside the database, such as files.

    It gets the ids of a batch before the rows are deleted, and again if the process is killed in between.
    """

    def register(function: Cleaner) -> Cleaner:
        _cleaners.setdefault(model, []).append(function)
        return function

    return register


def erase(rows: QuerySet[Any], on_batch: OnBatch, *, go_on: Callable[[], None]) -> None:
    """Delete the rows and everything that hangs on them; foreign keys that may be null are set to null.

    `go_on` is called between transactions and may raise to stop.
    """
    while ids := list(rows.order_by().values_list("pk", flat=True)[:BATCH]):
        _erase_ids(rows.model, ids, on_batch, go_on)
        go_on()


def _erase_ids(model: type[Model], ids: Sequence[int], on_batch: OnBatch, go_on: Callable[[], None]) -> None:
    for clean in _cleaners.get(model, ()):
        clean(ids)
    for key in references_to(model):
        rows = key.model._base_manager.filter(**{f"{key.name}__in": ids})
        # A row that references its own table (a revision's parent) has the same owner and goes with that.
        if key.remote_field.on_delete is SET_NULL or key.model is model:
            _set_null(rows, key, go_on)
        else:
            erase(rows, on_batch, go_on=go_on)
    with transaction.atomic():
        # Nothing references these rows any more, so Django need not look for references again.
        on_batch(model._meta.label, DeleteQuery(model).delete_batch(list(ids), DEFAULT_DB_ALIAS))


def _set_null(rows: QuerySet[Any], key: "ForeignKey[Any, Any]", go_on: Callable[[], None]) -> None:
    while ids := list(rows.order_by().values_list("pk", flat=True)[:BATCH]):
        rows.model._base_manager.filter(pk__in=ids).update(**{key.name: None})
        go_on()


@cache
def references_to(model: type[Model]) -> "tuple[ForeignKey[Any, Any], ...]":
    """The foreign keys to `model`, in an order in which rows that reference others go first.

    Otherwise a column of many rows would be set to null before the rows themselves are deleted.
    """
    keys = [key for key in _foreign_keys() if key.related_model is model]
    children = {key.model for key in keys if key.remote_field.on_delete is not SET_NULL} - {model}
    # The models deleted together with each child: its own references, up to the other children.
    parts = {child: _part(child, children) for child in children}
    before: dict[type[Model], set[type[Model]]] = {child: set() for child in children}
    for child, part in parts.items():
        for other, other_part in parts.items():
            if child is not other and any(k.model in other_part and k.related_model in part for k in _foreign_keys()):
                before[child].add(other)
    order: list[type[Model]] = []

    def visit(child: type[Model], path: frozenset[type[Model]]) -> None:
        # Circles are possible and harmless: they only cost the updates.
        for other in sorted(before[child] - path, key=_label):
            visit(other, path | {other})
        if child not in order:
            order.append(child)

    for child in sorted(children, key=_label):
        visit(child, frozenset({child}))
    return tuple(sorted(keys, key=lambda key: order.index(key.model) if key.model in order else len(order)))


def _part(child: type[Model], others: set[type[Model]]) -> set[type[Model]]:
    found, waiting = {child}, [child]
    while waiting:
        current = waiting.pop()
        for key in _foreign_keys():
            owned = key.related_model is current and key.remote_field.on_delete is not SET_NULL
            if owned and key.model not in found | others:
                found.add(key.model)
                waiting.append(key.model)
    return found


@cache
def _foreign_keys() -> "tuple[ForeignKey[Any, Any], ...]":
    models = apps.get_models(include_auto_created=True)
    return tuple(field for model in models for field in model._meta.local_fields if isinstance(field, ForeignKey))


def _label(model: type[Model]) -> str:
    return model._meta.label
