"""Import pull-request records. There is one per instance; an existing one is updated."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from django.urls import reverse
from pydantic import Field

from curation.duels.models import Prompt, PullRequest, PullRequestText
from curation.duels.prompts.doubts import compare_records
from curation.duels.prompts.exclusions import exclude_oversized
from curation.imports.insert import as_json, insert_rows, now_value, reserve_ids
from curation.imports.layouts.clean import clean
from curation.imports.layouts.rows.surroundings import name_of
from curation.imports.layouts.session import repo_of
from curation.imports.row_kinds import ImportKind, ImportTarget, Options, RowPreview
from curation.imports.sources.rows import RowRefused, SourceRow
from curation.projects.models import Project
from curation.runs.models import Run
from curation.web.ids import KeyList
from curation.web.text.figures import counted

DIFF_HEADER = re.compile(r"^diff --git (?:\"?a/(.+?)\"?) (?:\"?b/(.+?)\"?)$", re.MULTILINE)
FILE_HEADER = re.compile(r"^\+\+\+ \"?b/(.+?)\"?(?:\t.*)?$", re.MULTILINE)
ISSUE_COLUMNS = ("issue", "problem_statement", "issue_text")
TEXT_COLUMNS = {"description": ("description", "body", "pr_description"), "patch": ("patch", "diff")}
KEPT = ("repo", "title", "commit", "files", "patch_tokens")
KEPT_TEXT = ("issue", "description", "patch")


class RecordOptions(Options):
    """Records that no prompt needs are left out once the project has prompts."""

    keep_all: bool = Field(False, description="Keep records of instances without a prompt too.")


@dataclass(frozen=True, slots=True)
class PullRequestRow:
    """One record. `files` are paths; `patch_tokens` are estimated: characters ÷ 4."""

    instance_id: str
    repo: str
    title: str
    commit: str
    files: list[str]
    issue: str
    description: str
    patch: str
    has_replacements: bool = False

    @property
    def patch_tokens(self) -> int:
        return len(self.patch) // 4


class PullRequestKind(ImportKind[RecordOptions, PullRequestRow]):
    name = "pr_records"
    title = "Pull-request records"
    unit = "records"
    columns = "instance_id; issue, title, description, files, commit, patch"
    words: ClassVar[Mapping[str, str]] = {
        "records": "New records",
        "updated": "Changed records",
        "duplicates": "Known records, unchanged",
        "not_needed": "Records that no turn needs, left out",
        "oversized": "Excluded, because the patch is too long",
        "doubtful": "Doubtful: may belong to another task",
        "replaced": "With characters replaced by U+FFFD",
    }
    options = RecordOptions

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = [("Show the turns with a record", f"{reverse('prompt-list', args=[slug])}?has_record=true")]
        if run.result.get("doubtful"):
            shown.insert(0, ("Check doubtful records", f"{reverse('prompt-list', args=[slug])}?doubtful=true"))
        return [("Launch a duel run", f"{reverse('run-new', args=[slug])}?kind=duel"), *shown]

    def parse(self, row: SourceRow, options: RecordOptions) -> PullRequestRow:
        value, replaced = clean(row.value, "")
        instance_id = name_of(value, "instance_id")
        if not instance_id:
            named = ", ".join(list(value)[:12]) or "none"
            raise RowRefused(f"no instance_id; the row has the columns {named}")
        issue = _text(value, ISSUE_COLUMNS)
        patch = _text(value, TEXT_COLUMNS["patch"])
        description = _text(value, TEXT_COLUMNS["description"])
        title = _text(value, ("title",)) or (issue.strip().splitlines() or [""])[0]
        if not (issue or patch or description):
            raise RowRefused("neither an issue nor a description nor a patch")
        return PullRequestRow(
            instance_id=instance_id,
            repo=name_of(value, "repo") or repo_of(instance_id),
            title=title[:500],
            commit=_text(value, ("commit", "commit_sha", "merge_commit", "base_commit"))[:80],
            files=_files(value.get("files")) or files_of_patch(patch),
            issue=issue,
            description=description,
            patch=patch,
            has_replacements=bool(replaced),
        )

    def weight(self, entry: PullRequestRow) -> int:
        return len(entry.patch) + len(entry.issue) + len(entry.description)

    def preview(self, row: SourceRow, options: RecordOptions) -> RowPreview:
        entry = self.parse(row, options)
        files = f"{counted(len(entry.files), 'file')}, patch of {counted(entry.patch_tokens, 'token')}"
        return RowPreview("pull-request records", 1, [(entry.instance_id, f"{entry.title}\n{files}")])

    def write(self, target: ImportTarget, entries: list[PullRequestRow]) -> dict[str, int]:
        """Return the counts of `records` (new), `updated`, `duplicates` (unchanged), `oversized`, `doubtful`, and
        `not_needed`: left out, because no prompt has the instance."""
        project = target.run.project
        target.notes["layout"] = "pull-request records"
        # One import at a time writes to a project, so that the counts are right.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        rows = {entry.instance_id: entry for entry in entries}
        given = len(rows)
        if not target.run.params.get("options", {}).get("keep_all"):
            rows = _needed(project, rows)
        existing = {
            found.instance_id: found
            for found in PullRequest.objects.filter(project=project, instance_id__in=list(rows)).select_related("text")
        }
        new = [entry for key, entry in rows.items() if key not in existing]
        changed = [entry for key, entry in rows.items() if key in existing and not _same(existing[key], entry)]
        _create(target.run, new)
        seen = [found.pk for found in existing.values() if found.run_id != target.run.pk and not found.imported_again]
        PullRequest.objects.filter(pk__in=seen).update(imported_again=True)
        for entry in changed:
            _update(existing[entry.instance_id], entry)
        doubtful = compare_records(project, [entry.instance_id for entry in (*new, *changed)])
        oversized = exclude_oversized(project, {entry.instance_id: entry.patch_tokens for entry in (*new, *changed)})
        return {
            "records": len(new),
            "updated": len(changed),
            "duplicates": len(entries) - (given - len(rows)) - len(new) - len(changed),
            "oversized": oversized,
            "doubtful": doubtful,
            "not_needed": given - len(rows),
            "replaced": sum(entry.has_replacements for entry in rows.values()),
        }


def _needed(project: Project, rows: dict[str, PullRequestRow]) -> dict[str, PullRequestRow]:
    """Return the rows of instances with a prompt. Before the first prompt, nobody knows which are needed: all are."""
    prompts = Prompt.objects.of(project)
    if not prompts.exists():
        return rows
    wanted = set(prompts.filter(instance_id__in=KeyList(list(rows))).values_list("instance_id", flat=True).distinct())
    return {instance_id: entry for instance_id, entry in rows.items() if instance_id in wanted}


def files_of_patch(patch: str) -> list[str]:
    """Return the paths that a unified diff changes, each once, in order."""
    found = [match[2] for match in DIFF_HEADER.finditer(patch)] or FILE_HEADER.findall(patch)
    return list(dict.fromkeys(found))


def _files(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowRefused("files is not a list")
    paths = []
    for index, entry in enumerate(value):
        path = (entry.get("path") or entry.get("filename")) if isinstance(entry, dict) else entry
        if not isinstance(path, str) or not path:
            raise RowRefused(f"files.{index} is neither a path nor an object with `path` or `filename`")
        paths.append(path)
    return paths


def _text(value: dict[str, object], columns: tuple[str, ...]) -> str:
    for column in columns:
        found = value.get(column)
        if found is None:
            continue
        if not isinstance(found, str):
            raise RowRefused(f"{column} is not text")
        return found
    return ""


def _same(existing: PullRequest, entry: PullRequestRow) -> bool:
    return all(getattr(existing, name) == getattr(entry, name) for name in KEPT) and all(
        getattr(existing.text, name) == getattr(entry, name) for name in KEPT_TEXT
    )


def _create(run: Run, entries: list[PullRequestRow]) -> None:
    ids = reserve_ids(PullRequest, len(entries))
    same = (run.project_id, run.pk, False, "", False, now_value())
    insert_rows(
        PullRequest,
        ("project", "run", "imported_again", "doubt", "doubt_cleared", "created_at", "id", "instance_id", *KEPT),
        [
            (*same, pk, e.instance_id, e.repo, e.title, e.commit, as_json(e.files), e.patch_tokens)
            for pk, e in zip(ids, entries, strict=True)
        ],
    )
    insert_rows(
        PullRequestText,
        ("pull_request", "issue", "description", "patch"),
        [(pk, e.issue, e.description, e.patch) for pk, e in zip(ids, entries, strict=True)],
    )


def _update(existing: PullRequest, entry: PullRequestRow) -> None:
    PullRequest.objects.filter(pk=existing.pk).update(**{name: getattr(entry, name) for name in KEPT})
    PullRequestText.objects.filter(pk=existing.pk).update(**{name: getattr(entry, name) for name in KEPT_TEXT})
