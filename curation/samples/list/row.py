"""A row of the samples list as a template tag: a template takes as long for the rows as for all else of the page."""

from django import template
from django.template.defaultfilters import floatformat
from django.utils.safestring import SafeString

from curation.samples.list.pages import Row
from curation.samples.models import Sample, Status
from curation.web.components import NOTHING, badge, time
from curation.web.text.escape import format_html, format_html_join
from curation.web.text.figures import percent

register = template.Library()

HIDDEN = SafeString('<span class="muted">hidden</span>')
OPPONENTS = {
    "reference": SafeString(' <span class="muted">against the reference</span>'),
    "none": SafeString(' <span class="muted">single answer</span>'),
}
ROW = """<tr data-row id="sample-{pk}">
  <td class="table__check"><input type="checkbox" name="ids" value="{pk}" aria-label="Select sample {pk}"></td>
  <td class="num">{pk}</td>
  <td class="num">{score}</td>
  <td class="num col-3">{predicted}</td>
  <td>{bucket}</td>
  <td class="col-2">{status}</td>
  <td class="table__main table__main--lines"><a class="table__lines" href="{page_url}" hx-get="{panel_url}" \
hx-target="#panel-body" hx-swap="innerHTML" data-panel-title="Sample {pk}" data-row-focus>{preview}</a>{opponent}</td>
  <td class="col-2">{flags}</td>
  <td class="mono col-2 table__side"><div class="truncate" title="{instance}">{instance}</div>{repo}</td>
  <td class="mono col-4 table__side truncate" title="{source}">{source}</td>
  <td class="col-3">{style}</td>
  <td class="col-4">{reviewer}</td>
  <td class="col-2 nowrap">{created}</td>
</tr>"""


@register.simple_tag
def sample_row(row: Row, *, may_adjudicate: bool) -> SafeString:
    """Return the table row of a sample. A hidden one has neither scores nor preview, and only the flags of `row`."""
    sample, hidden = row.sample, row.hidden
    repo = format_html('<div class="truncate muted" title="{0}">{0}</div>', sample.repo) if sample.repo else ""
    return format_html(
        ROW,
        pk=row.pk,
        score=NOTHING if hidden or sample.shown_score is None else floatformat(sample.shown_score, 1),
        predicted=NOTHING if hidden or sample.predicted is None else percent(sample.predicted),
        bucket=HIDDEN if hidden else _bucket(sample),
        status=_status(row, may_adjudicate=may_adjudicate),
        page_url=row.page_url,
        panel_url=row.panel_url,
        preview=f"Sample {row.pk}, hidden until it is decided" if hidden else sample.preview or "(no preview)",
        opponent=OPPONENTS.get(getattr(sample, "opponent", None) or "", ""),
        flags=_flags(row),
        instance=sample.instance_id,
        repo=repo,
        source=sample.source,
        style="" if hidden else sample.action_style,
        reviewer=sample.decided_by.username if sample.decided_by else "",
        created=time(sample.created_at),
    )


def _bucket(sample: Sample) -> SafeString:
    return badge(sample.shown_bucket, tone=sample.bucket_tone) if sample.shown_bucket else NOTHING


def _status(row: Row, *, may_adjudicate: bool) -> SafeString:
    sample = row.sample
    badges = [badge(Status(sample.status).label, tone=sample.status_tone)]
    if may_adjudicate and sample.disputed:
        badges.append(badge("disputed", tone="attention"))
    if row.in_review_by:
        badges.append(badge(f"in review by {row.in_review_by}", tone="borderline"))
    return format_html_join(" ", "{}", ((each,) for each in badges))


def _flags(row: Row) -> SafeString:
    badges = format_html_join("", "{} ", ((badge(name, tone="attention", solid=True),) for name in row.flags))
    return format_html("{}{}", badges, HIDDEN) if row.hidden else badges
