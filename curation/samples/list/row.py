"""A row of the samples list as a template tag: a template takes as long for the rows as for all else of the page."""

from html import escape

from django import template
from django.utils.safestring import SafeString

from curation.samples.list.pages import ListedSample
from curation.samples.models import Sample, SampleStatus
from curation.web.components import NOTHING, badge, time
from curation.web.text.figures import number, percent

register = template.Library()

HIDDEN = SafeString('<span class="muted">hidden</span>')
OPPONENTS = {
    "reference": SafeString(' <span class="muted">against the reference</span>'),
    "none": SafeString(' <span class="muted">single answer</span>'),
}


@register.simple_tag
def sample_row(row: ListedSample, *, may_adjudicate: bool) -> SafeString:
    """Return the table row of a sample. A hidden one has neither scores nor preview, and only the flags of `row`."""
    sample, hidden, pk = row.sample, row.hidden, row.pk
    score = NOTHING if hidden or sample.shown_score is None else number(sample.shown_score, 1)
    predicted = NOTHING if hidden or sample.predicted is None else percent(sample.predicted)
    preview = f"Sample {pk}, hidden until it is decided" if hidden else escape(sample.preview) or "(no preview)"
    opponent = OPPONENTS.get(getattr(sample, "opponent", None) or "", "")
    instance, repo, source = escape(sample.instance_id), escape(sample.repo), escape(sample.source)
    return SafeString(f"""<tr data-row id="sample-{pk}">
  <td class="table__check"><input type="checkbox" name="ids" value="{pk}" aria-label="Select sample {pk}"></td>
  <td class="num">{pk}</td>
  <td class="num">{score}</td>
  <td class="num col-3">{predicted}</td>
  <td>{HIDDEN if hidden else _bucket(sample)}</td>
  <td class="col-2">{_status(row, may_adjudicate=may_adjudicate)}</td>
  <td class="table__main table__main--lines"><a class="table__lines" href="{row.page_url}" hx-get="{row.panel_url}" \
hx-target="#panel-body" hx-swap="innerHTML" data-panel-title="Sample {pk}" data-row-focus>{preview}</a>{opponent}</td>
  <td class="col-2">{_flags(row)}</td>
  <td class="mono col-2 table__side"><div class="truncate" title="{instance}">{instance}</div>\
{f'<div class="truncate muted" title="{repo}">{repo}</div>' if repo else ""}</td>
  <td class="mono col-4 table__side truncate" title="{source}">{source}</td>
  <td class="col-3">{"" if hidden else escape(sample.action_style)}</td>
  <td class="col-4">{escape(getattr(sample, "decided_by_name", None) or "")}</td>
  <td class="col-2 nowrap">{time(sample.created_at)}</td>
</tr>""")


def _bucket(sample: Sample) -> SafeString:
    return badge(sample.shown_bucket, tone=sample.bucket_tone) if sample.shown_bucket else NOTHING


def _status(row: ListedSample, *, may_adjudicate: bool) -> str:
    sample = row.sample
    badges = [badge(SampleStatus(sample.status).label, tone=sample.status_tone)]
    if may_adjudicate and sample.disputed:
        badges.append(badge("disputed", tone="attention"))
    if row.in_review_by:
        badges.append(badge(f"in review by {row.in_review_by}", tone="borderline"))
    return " ".join(badges)


def _flags(row: ListedSample) -> str:
    badges = "".join([f"{badge(name, tone='attention', solid=True)} " for name in row.flags])
    return badges + HIDDEN if row.hidden else badges
