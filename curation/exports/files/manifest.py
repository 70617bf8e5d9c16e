"""`manifest.json`: the inputs of an export, so that it can be checked and made again. It has no time and no id of the
export, so the same recipe on the same frozen rows gives the same manifest. It says how the rows were approved: by
people, or under which guarantees."""

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from curation import __version__
from curation.duels.models import Answer, Duel, Verdict
from curation.duels.score.models import Score
from curation.exports.files.counts import ExportCounts
from curation.exports.models import Export, ExportFile, FrozenRow
from curation.exports.recipes.recipe import Recipe
from curation.guarantees.models import Guarantee
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.trajectories.models import Trajectory
from curation.web.ids import IdList
from curation.web.text.figures import counted, percent
from judging.messages import TOKENIZER
from judging.scan.rules import BY_NAME
from judging.scan.scan import LIBRARIES, rule_set_version

Entries = list[dict[str, object]]


def manifest(
    export: Export, recipe: Recipe, counts: ExportCounts, counts_json: dict[str, object], files: Sequence[ExportFile]
) -> dict[str, object]:
    """Return the document. `files` are all files but the manifest itself, whose sha256 the export keeps."""
    project = export.project
    frozen = {name: getattr(counts, name) for name in ("samples", "revisions", "trajectories", "pairs")}
    return {
        "manifest": 1,
        "software": {"name": "winnow", "version": __version__},
        "project": {"slug": project.slug, "name": project.name, "settings": project.settings.model_dump(mode="json")},
        "recipe": recipe.model_dump(mode="json"),
        "tokenizer": TOKENIZER,
        "groups": counts_json["groups"],
        "frozen": {"file": "frozen.jsonl", **frozen},
        "scan": _scan(project),
        "counts": counts_json,
        "models": _models(export),
        "judges": _judges(export),
        "reviewers": [{"name": name, "samples": samples} for name, samples in sorted(counts.reviewers.items())],
        "approvals": approvals(counts),
        "files": [
            {name: getattr(file, name) for name in ("name", "format", "split", "rows", "bytes", "sha256")}
            for file in files
        ],
    }


def _scan(project: Project) -> dict[str, object]:
    """Return the rules of the scan and the project's action for each; the counts are in `counts.scan`."""
    return {
        "rules": rule_set_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "actions": {rule: project.settings.scan.action(rule) for rule in BY_NAME},
    }


def _models(export: Export) -> Entries:
    """Return the models that wrote the frozen samples and their instructions, by side: king, challenger, operator."""
    endpoints = Endpoint.objects.filter(project=export.project).values_list("name", "model", "family")
    strings = {name: model for name, model, _ in endpoints}
    families = {name: family for name, _, family in endpoints}
    duels = Duel.objects.filter(sample_id__in=_sample_ids(export)).order_by()
    entries: Entries = []
    for side in ("challenger", "king"):
        ids = duels.filter(**{f"{side}__isnull": False}).values(f"{side}_id")
        answers = Answer.objects.filter(pk__in=ids).order_by("model", "family", "instructions_hash")
        for name, family, digest in answers.values_list("model", "family", "instructions_hash").distinct():
            model = strings.get(name, "")
            entries.append(
                {"side": side, "name": name, "model": model, "family": family, "instructions_sha256": digest}
            )
    rollouts = Trajectory.objects.filter(sample_id__in=_sample_ids(export)).order_by("model", "instructions_hash")
    for name, digest in rollouts.values_list("model", "instructions_hash").distinct():
        operator = {"side": "operator", "name": name, "model": strings.get(name, ""), "family": families.get(name, "")}
        entries.append({**operator, "instructions_sha256": digest})
    return entries


def _judges(export: Export) -> Entries:
    """Return the judges whose verdicts made the scores of the frozen samples, and their instructions."""
    strings = dict(Endpoint.objects.filter(project=export.project).values_list("name", "model"))
    made_by = scores_of(export).values_list("verdicts", flat=True)
    found: set[tuple[str, str, str]] = set()
    ids = (pk for verdicts in made_by.iterator(chunk_size=1000) for pk in verdicts)
    while chunk := list(islice(ids, 5000)):
        rows = Verdict.objects.filter(pk__in=IdList(chunk)).values_list("judge", "family", "instructions_hash")
        found.update(rows.distinct())
    return [
        {"name": name, "model": strings.get(name, ""), "family": family, "instructions_sha256": digest}
        for name, family, digest in sorted(found)
    ]


def scores_of(export: Export) -> QuerySet[Score]:
    """Return the panels' scores of the frozen samples."""
    return Score.objects.filter(counts_for__sample__in=_sample_ids(export))


def _sample_ids(export: Export) -> QuerySet[FrozenRow, Any]:
    return FrozenRow.objects.filter(export=export).values("sample_id")


def approvals(counts: ExportCounts) -> dict[str, object]:
    """Return the rows by the way of their approval, and those of rejected samples, as the manifest has them."""
    guarantees = (
        Guarantee.objects.filter(pk__in=list(counts.unseen)).select_related("audit", "created_by").order_by("pk")
    )
    return {
        "people": counts.approved_rows,
        "rejected": counts.rejected,
        "guarantees": [
            {
                "id": str(row.pk),
                "rows": counts.unseen[row.pk],
                "alpha": row.audit.alpha,
                "delta": row.audit.delta,
                "score": row.audit.score,
                "threshold": row.threshold,
                "set_sha256": row.audit.set_sha256,
                "started_by": row.created_by.get_username(),
            }
            for row in guarantees
        ],
    }


def origin_sentences(export: Export, counts: ExportCounts) -> str:
    """Return the first sentences of the dataset card: whether models judged and people approved the samples. An
    imported score is no panel's, and nobody looked at rows under a guarantee."""
    said = [
        *(["judged by a panel of models"] if scores_of(export).exists() else []),
        *(["approved by people"] if counts.approved_rows else []),
    ]
    quality = f"{' and '.join(said)}, " if said else ""
    return f"Training data for agent models, {quality}exported by Winnow {__version__}. {_approvals_sentence(counts)}"


def _approvals_sentence(counts: ExportCounts) -> str:
    """Return the approvals as a sentence, with one number for all guarantees of the same promise."""
    promises = Counter[tuple[float, float]]()
    for row in Guarantee.objects.filter(pk__in=list(counts.unseen)).select_related("audit"):
        promises[row.audit.alpha, row.audit.delta] += counts.unseen[row.pk]
    parts = [f"{counted(counts.approved_rows, 'row')} approved by people"]
    if counts.rejected:
        parts.append(f"{counts.rejected:,} rejected by people, to be avoided")
    for (alpha, delta), rows in sorted(promises.items()):
        promise = f"a guarantee of {percent(1 - delta, 1)} at α = {percent(alpha, 1)}"
        parts.append(f"{rows:,} under {promise}: nobody looked at these")
    return f"{', '.join(parts)}."
