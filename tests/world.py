"""Worlds: rows that are made once, by the run engine for example, and that many tests begin with.

    @world
    def run(patched: pytest.MonkeyPatch) -> Run:
        '''24 judged duels.'''
        serve(patched).says["judge-a"] = fair()
        return run_to_end(make_arena(prompts=24)[0])

    @pytest.mark.django_db(transaction=True)
    def test_a_duel_is_listed(client: Client, run: Run) -> None: ...

The first test of a process that needs the world calls the function and keeps a copy of all rows and files. Later tests
get this copy, which takes milliseconds. Each test may change its rows, also from other threads: the next has new ones.
What the function patches ends with it.
"""

import copy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import override_settings
from pytest_django import Settings

from curation.runs.engine import dispatch

Make = Callable[[pytest.MonkeyPatch], Any]
# Inserts a table's rows, and the rows.
Tables = list[tuple[str, list[tuple[Any, ...]]]]


@dataclass(frozen=True, slots=True)
class World:
    value: Any
    tables: Tables
    files: Path


def world(make: Make) -> Any:
    """Return a fixture with the name and the value of the function. The test's files are in `tmp_path / "files"`."""
    kept: list[World] = []

    @pytest.fixture(name=make.__name__)
    def value(
        transactional_db: None, settings: Settings, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Any:
        if kept:
            _insert(kept[0].tables)
        else:
            kept.append(_make(make, tmp_path_factory.mktemp(make.__name__)))
        settings.MEDIA_ROOT = shutil.copytree(kept[0].files, tmp_path / "files", dirs_exist_ok=True)
        return copy.deepcopy(kept[0].value)

    return value


def _make(make: Make, files: Path) -> World:
    with pytest.MonkeyPatch.context() as patched, override_settings(MEDIA_ROOT=files):
        patched.setattr(dispatch, "send_work", lambda *args: None)
        value = make(patched)
    return World(value, list(_tables()), files)


def _tables() -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    quoted = connection.ops.quote_name
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            columns = [str(field.column) for field in model._meta.concrete_fields if not field.generated]
            names, table = ", ".join(map(quoted, columns)), quoted(model._meta.db_table)
            cursor.execute(f"SELECT {names} FROM {table}")  # noqa: S608 - our own names
            if rows := cursor.fetchall():
                places = ", ".join(["%s"] * len(columns))
                yield f"INSERT INTO {table} ({names}) VALUES ({places})", rows  # noqa: S608


def _insert(tables: Tables) -> None:
    """Insert the rows in one transaction, at whose end the foreign keys are checked."""
    with transaction.atomic(), connection.cursor() as cursor:
        for insert, rows in tables:
            cursor.executemany(insert, rows)
