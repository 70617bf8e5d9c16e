"""Clear a finding of the scan, or take that back."""

import re

from django.db import transaction

from curation.projects.access import Access
from curation.review.decisions.decide import MAX_REASON
from curation.review.decisions.findings import findings_of, flag_findings
from curation.review.decisions.state import change, refuse_errors
from curation.review.models import Clearance
from curation.review.queue.lease import lock_sample
from curation.samples.models import Sample
from curation.web.problems import FieldError, NotFound
from curation.web.text.storable import text_errors

_DIGEST = re.compile(r"[0-9a-f]{64}")


def clear(*, access: Access, sample_id: int, rule: str, value_sha256: str, reason: str) -> Sample:
    """Clear one value of the sample for one rule, with the reason in the audit log. The flags then name the remaining
    findings.

    Refused: an empty reason, and a value that the scan does not find in the sample.
    """
    errors = text_errors("reason", reason, at_most=MAX_REASON)
    if not reason.strip():
        errors.append(FieldError("reason", "is empty; say why this text may be exported"))
    if not _DIGEST.fullmatch(value_sha256):
        errors.append(FieldError("value_sha256", "is the SHA-256 of the value, 64 hexadecimal digits"))
    refuse_errors(errors)
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        if not any((row.rule, row.value_sha256) == (rule, value_sha256) for row in findings_of(sample)):
            raise NotFound(f"The scan finds no {rule} with that hash in sample {sample.pk}.")
        values = {"reason": reason.strip(), "cleared_by": access.user}
        Clearance.objects.get_or_create(sample=sample, rule=rule, value_sha256=value_sha256, defaults=values)
        return _finish(access, sample, "sample.clear", rule=rule, value_sha256=value_sha256, reason=reason.strip())


def withdraw(*, access: Access, sample_id: int, rule: str, value_sha256: str) -> Sample:
    """Take a clearance back. `NotFound` where there is none."""
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        removed, _ = Clearance.objects.filter(sample=sample, rule=rule, value_sha256=value_sha256).delete()
        if not removed:
            raise NotFound(f"No {rule} with that hash is cleared in sample {sample.pk}.")
        return _finish(access, sample, "sample.withdraw_clearance", rule=rule, value_sha256=value_sha256)


def _finish(access: Access, sample: Sample, action: str, **data: str) -> Sample:
    flag_findings(sample)
    change(sample)
    access.record(action, str(sample.pk), data)
    return sample
