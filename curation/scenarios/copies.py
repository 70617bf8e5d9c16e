"""Copies: scenarios of a project that are alike but for their names have the same `group`, the id of the first of
them. They are found by the signatures of their bundles when one is saved, and counted once.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.db import connections, transaction

from curation.projects.models import Project
from curation.scenarios.models import Scenario, ScenarioSignature, ScenarioText
from curation.web.ids import IdList
from judging.near_duplicates import Groups, bands_of, group_exact, group_near, minima_of
from judging.shell.words import word_set

# Raise it with every change of the signature's input: stored signatures of another version are made again.
VERSION = 1
WINDOW = 6
# With fewer windows, one changed word is most of the bundle: such bundles are only compared as a whole.
MIN_WINDOWS = 40
_WORDS = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@%+*?-]+)+/?|\d+|[^\W\d]\w*|[^\s\w]")
_NAME = re.compile(r"[\w~]|\.{0,2}/[\w.]")
_KEPT = word_set(
    """
    if then else elif fi for while until do done case esac in function return exit panic shift set local export read
    test true false echo printf cat ls cp mv rm mkdir rmdir ln chmod chown touch find grep egrep fgrep sed awk sort uniq
    head tail wc cut tr tee xargs tar gzip gunzip zip unzip cksum md5sum sha256sum stat date sleep kill mkfifo basename
    dirname cmp diff comm join paste seq expr cd pwd env eval exec trap wait sh
    a an and are as at be been but by each every for from has have if in into is it its must no none not of on one only
    or other out so some than that the their them then there these they this to two was were what when where which who
    with
    END BEGIN NR FNR NF FS OFS RS print substr index split length toupper tolower gsub sub match
    usage help all first last line lines file files name names number write
    """
)


def copy_signature(document: Mapping[str, Any]) -> ScenarioSignature:
    """Return the signature of a bundle: 8 bytes of a digest over the whole, and the minima over its windows, none for a
    short bundle."""
    parts = [_WORDS.findall(text) for text in _texts(document)]
    whole = hashlib.blake2b("\0".join(sorted(_without_names(part) for part in parts)).encode(), digest_size=8)
    windows = {window for part in parts for window in _windows(part)}
    near = minima_of(windows) if len(windows) >= MIN_WINDOWS else b""
    return ScenarioSignature(version=VERSION, exact=whole.digest(), near=near)


def _texts(document: Mapping[str, Any]) -> Iterator[str]:
    """The texts of a bundle; of a Harbor task all its files but for the one with its name."""
    if document.get("family") == "harbor":
        yield from (_data(file) for file in document["files"] if file["path"] != "task.toml")
        return
    yield document["announcement"]["text"]
    yield document["reference_solution"]
    for file in document.get("fixtures", []):
        yield _data(file)


def _data(file: Mapping[str, Any]) -> str:
    return file.get("content") or file.get("base64") or ""


def _windows(words: Sequence[str]) -> Iterator[str]:
    for start in range(max(1, len(words) - WINDOW + 1)):
        yield _without_names(words[start : start + WINDOW])


def _without_names(words: Sequence[str]) -> str:
    numbers: dict[str, int] = {}
    return " ".join(
        str(numbers.setdefault(word, len(numbers))) if word not in _KEPT and _NAME.match(word) else word
        for word in words
    )


# Two bundles with other words but the same shape have about 0.9; different tasks around one provider 0.5 to 0.7.
THRESHOLD = 0.8
BATCH = 500


@transaction.atomic
def link_copies(project: Project, changed: Iterable[int]) -> None:
    """Sign the bundles that changed, and group all scenarios of the project again.

    Groups are made from all signatures, so that an edit also takes apart what only the old bundle linked. The caller
    has locked the project's row, or else two saves at once could miss each other.
    """
    ids = sorted(changed)
    outdated = Scenario.objects.of(project).exclude(signature__version=VERSION).values_list("pk", flat=True)
    ids = sorted({*ids, *outdated})
    for start in range(0, len(ids), BATCH):
        texts = ScenarioText.objects.filter(scenario_id__in=IdList(ids[start : start + BATCH]))
        ScenarioSignature.objects.bulk_create(
            [_signed(text) for text in texts],
            update_conflicts=True,
            unique_fields=["scenario"],
            update_fields=["version", "exact", "near"],
        )
    _write(project, _groups(project))


def link_all(using: str, **_: object) -> None:
    """Link copies in every project with scenarios that were never signed, or signed by an older version. Called after
    every `migrate`."""
    if ScenarioSignature._meta.db_table not in connections[using].introspection.table_names():
        return  # migrated to an older state
    outdated = Scenario.objects.using(using).exclude(signature__version=VERSION).order_by()
    for pk in list(outdated.values_list("project_id", flat=True).distinct()):
        with transaction.atomic():
            link_copies(Project.objects.select_for_update(no_key=True).only("pk").get(pk=pk), [])


def _signed(text: ScenarioText) -> ScenarioSignature:
    made = copy_signature(text.bundle)
    made.scenario_id = text.scenario_id
    return made


def _groups(project: Project) -> dict[int, int]:
    """Scenario → group, for those in groups of more than one."""
    stored = ScenarioSignature.objects.filter(scenario__project=project).order_by("scenario")
    rows = [(pk, bytes(exact), bytes(near)) for pk, exact, near in stored.values_list("scenario", "exact", "near")]
    groups = Groups(len(rows))
    near = [row[2] for row in rows]
    group_exact(groups, np.array([int.from_bytes(row[1]) for row in rows], dtype=np.uint64))
    group_near(groups, bands_of(near), lambda numbers: [near[number] for number in numbers], threshold=THRESHOLD)
    return {rows[member][0]: rows[root][0] for root, members in groups.sets().items() for member in members}


def _write(project: Project, groups: Mapping[int, int]) -> None:
    """Store the groups that differ from the stored ones; a scenario without copies is a group of its own."""
    stored = dict(Scenario.objects.of(project).values_list("pk", "group"))
    changed = [Scenario(pk=pk, group=groups.get(pk, pk)) for pk, old in stored.items() if groups.get(pk, pk) != old]
    Scenario.objects.bulk_update(changed, ["group"], batch_size=BATCH)
