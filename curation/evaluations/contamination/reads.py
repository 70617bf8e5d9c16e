"""Reads of contamination checks."""

from curation.evaluations.models import ContaminationCheck, Split


def newest_check(split: Split | None) -> ContaminationCheck | None:
    """The newest finished check of the split: it stands above every score."""
    if split is None:
        return None
    return ContaminationCheck.objects.filter(split=split, ready=True).order_by("-id").first()
