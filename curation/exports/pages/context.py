from typing import Any

from django.core.files.storage import default_storage
from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from curation.exports.files.counts import ending_shares
from curation.exports.files.write import CARD
from curation.exports.hygiene.held_out import paraphrase_coverage, short_rows_note
from curation.exports.models import MANIFEST, Export
from curation.exports.pages.preview import ExportPreview
from curation.exports.rows.images import is_image
from curation.exports.rows.skip_reasons import SkipReason
from curation.projects.models import Project
from curation.runs.models import LIVE
from curation.samples.models import Sample
from curation.web.text.figures import counted, percent
from curation.web.text.markup import markdown_html
from judging.contamination.levels import Level

MAX_READ = 400_000
_WEIGHTS = ("desirable_weight", "undesirable_weight")


def export_page(export: Export) -> dict[str, object]:
    """Return the progress of a live run, or files, counts, card and manifest once they are written."""
    live = export.run.state in LIVE
    if not export.ready:
        total = export.counts.get("samples")
        return {
            "export": export,
            "live": live,
            "written": int(export.counts.get("written", 0)),
            "total": total,
        }
    counts = _counts_view(export.counts, export.examples)
    stored = list(export.files.all())
    files = [file for file in stored if not is_image(file.name)]
    images = [f.bytes for f in stored if is_image(f.name)]
    note = f"{counted(len(images), 'image')} of the rows, {filesizeformat(sum(images))}" if images else ""
    card = markdown_html(_text(export, CARD).partition("\n---\n")[2])
    manifest = _text(export, MANIFEST)
    duplicates = SkipReason.DUPLICATE.value in export.counts["excluded"]
    contaminated = bool((export.counts.get("contamination") or {}).get("samples"))
    return {
        "export": export,
        "live": live,
        "counts": counts,
        "files": files,
        "card": card,
        "manifest": manifest,
        "duplicates": duplicates,
        "contaminated": contaminated,
        "images": note,
    }


def preview_view(project: Project, found: ExportPreview) -> dict[str, object]:
    note = ""
    if not found.exact:
        decided = "approved" if found.approved == found.decided else "decided"
        note = f"Rows and reasons are of the first {found.checked:,} of {found.decided:,} {decided} samples."
    view = _counts_view(found.counts, found.examples, size=filesizeformat(found.bytes), note=note)
    return view | {"next_step": _next_step(project, found)}


def _next_step(project: Project, found: ExportPreview) -> tuple[str, str]:
    if found.counts["exported"]:
        return ("", "")
    if found.approved:
        return ("Open the approved samples", f"{reverse('sample-list', args=[project.slug])}?status=approved")
    if found.counts["samples"]:
        return ("Open the queue", reverse("queue", args=[project.slug]))
    if Sample.objects.of(project).exists():
        return ("Look at the samples", reverse("sample-list", args=[project.slug]))
    return ("Import samples", f"{reverse('import-new', args=[project.slug])}?kind=samples")


def _counts_view(
    counts: dict[str, Any], examples: dict[str, list[str]], *, size: str = "", note: str = ""
) -> dict[str, object]:
    rows, balance, template = counts["rows"], counts.get("balance"), counts.get("template") or {}
    reasons = [(SkipReason(code), count, examples.get(code, [])) for code, count in counts["excluded"].items()]
    return {
        "samples": counts["samples"],
        "exported": counts["exported"],
        "splits": list(next(iter(rows.values()), {})),
        "rows": [(name, list(cells.values())) for name, cells in rows.items()],
        "reasons": reasons,
        "size": size,
        "note": note,
        "groups": _groups(counts.get("groups", {})) if len(next(iter(rows.values()), {})) > 1 else "",
        "contamination": _contamination(counts.get("contamination")),
        "lengths": _lengths(counts.get("tokens", {})),
        "template": _template(template),
        "template_failures": [(one, SkipReason(one["reason"]).label) for one in template.get("examples", ())],
        "labels": [_labels(name, found) for name, found in counts.get("labels", {}).items()],
        "endings": [(name, percent(share, 1)) for name, share in ending_shares(balance)] if balance else [],
        "warnings": counts.get("warnings", []),
    }


def _lengths(tokens: dict[str, list[int]]) -> list[tuple[str, int]]:
    """Return the bins of row lengths that have rows, in words."""
    edges = tokens.get("edges", [])
    names = [*(f"up to {edge:,}" for edge in edges), *(f"over {edge:,}" for edge in edges[-1:])]
    return [(name, rows) for name, rows in zip(names, tokens.get("rows", []), strict=True) if rows]


def _template(found: dict[str, Any]) -> str:
    if not found:
        return ""
    failed = sum(found["failed"].values())
    return f"{counted(found['tried'], 'row')} tried against the chat template ({found['name']}), {failed:,} failed."


def _labels(name: str, found: dict[str, Any]) -> str:
    desirable, undesirable = (f"{low:g} to {high:g}" for low, high in (found[key] for key in _WEIGHTS))
    return (
        f"{name}: {found['desirable']:,} to learn, {found['undesirable']:,} to avoid."
        f" TRL recommends a desirable_weight of {desirable}, or an undesirable_weight of {undesirable}."
    )


def _groups(plan: dict[str, Any]) -> str:
    level = {"repo": "repository", "instance_id": "instance or scenario"}
    name = level.get(plan.get("group_by", ""))
    groups = counted(plan.get("groups", 0), "group")
    return f"Splits are grouped by {name}: {groups}, none of them in two splits." if name else ""


def _contamination(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    one = found["samples"] == 1
    done = f"{'is' if one else 'are'} {'left out' if found['left_out'] else 'still exported'}"
    sets = ", ".join(f"{held_out['label']} ({counted(held_out['rows'], 'row')})" for held_out in found["held_out"])
    text = f"{counted(found['samples'], 'sample')} {'contains' if one else 'contain'} a held-out row and {done}."
    text += f" Compared with: {sets}."
    if short := short_rows_note(sum(one.get("whole_only", 0) for one in found["held_out"])):
        text += f" {short}"
    if kinds := [f"{Level(name).sentence}: {count:,}" for name, count in found["levels"].items() if count]:
        text += f" By the strongest match: {'; '.join(kinds)}."
    return f"{text} {paraphrase_coverage(found.get('embedded'), found.get('not_embedded'))}"


def _text(export: Export, name: str) -> str:
    file = export.files.filter(name=name).first()
    if file is None or not default_storage.exists(file.stored_as):
        return ""
    with default_storage.open(file.stored_as) as opened:
        text = str(opened.read(MAX_READ).decode("utf-8", "replace"))
    return f"{text}\n… The rest is in the file {name}." if file.bytes > MAX_READ else text
