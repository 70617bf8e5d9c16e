"""Write, change and delete the card of an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import transaction

from curation.evaluations.compare.compare import model_of
from curation.evaluations.metrics import SCALES
from curation.evaluations.models import EvaluatedModel, Evaluation, Experiment
from curation.exports.models import Export
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.web.ids import find_param
from curation.web.problems import FieldError, Invalid
from curation.web.text.storable import storable

METRICS = {metric.name: metric for scale in SCALES.values() for metric in scale.metrics}
LONGEST_NAME, LONGEST_TRAINING = 120, 200_000


@dataclass(frozen=True, slots=True)
class Card:
    """The fields of a card. `export` is an id or empty; `base` and `trained` are an evaluation's id and a model's name,
    or None. `expected` are changes by metric, shares for rates: 0.34 is 34 points."""

    name: str
    export: str = ""
    training: str = ""
    base: tuple[str, str] | None = None
    trained: tuple[str, str] | None = None
    expected: Mapping[str, float] = field(default_factory=dict)


def write_card(*, access: Access, card: Card, experiment: Experiment | None = None) -> Experiment:
    """Write a new card, or all of an existing one. Raises `Invalid` with each wrong field."""
    access.require(Scope.RUN)
    _check(card)
    export = find_param(Export.objects.of(access.project), card.export, "export", "export") if card.export else None
    written = experiment or Experiment(project=access.project, created_by=access.user)
    changed = written.export_id != (export.pk if export else None)
    written.name, written.training, written.export = card.name.strip(), storable(card.training), export
    if export is not None and (changed or not written.manifest_sha256):
        written.manifest_sha256 = export.manifest_sha256
    elif export is None and experiment is None:
        written.manifest_sha256 = ""
    written.base, written.trained = (_model(access, name, getattr(card, name)) for name in ("base", "trained"))
    written.expected = dict(card.expected)
    with transaction.atomic():
        written.save()
        data = {"export": card.export, "trained": list(card.trained or ()), "expected": written.expected}
        action = "experiment.create" if experiment is None else "experiment.update"
        record(actor=access.user, project=access.project, action=action, subject=written.name, data=data)
    return written


def delete_card(*, access: Access, experiment: Experiment) -> None:
    access.require(Scope.RUN)
    with transaction.atomic():
        record(actor=access.user, project=access.project, action="experiment.delete", subject=experiment.name)
        experiment.delete()


def _check(card: Card) -> None:
    errors = []
    if not 0 < len(card.name.strip()) <= LONGEST_NAME:
        errors.append(FieldError("name", f"1 to {LONGEST_NAME} characters"))
    if len(card.training) > LONGEST_TRAINING:
        errors.append(FieldError("training", f"at most {LONGEST_TRAINING:,} characters"))
    for name, change in card.expected.items():
        if name not in METRICS:
            errors.append(FieldError(f"expected.{name}", f"is not a metric; the metrics are {', '.join(METRICS)}"))
        elif METRICS[name].rate and not -1 <= change <= 1:
            errors.append(FieldError(f"expected.{name}", "is a share from -1 to 1, such as 0.34 for 34 points"))
    if errors:
        raise Invalid.fields(errors)


def _model(access: Access, path: str, named: tuple[str, str] | None) -> EvaluatedModel | None:
    if named is None:
        return None
    evaluation = find_param(Evaluation.objects.of(access.project), named[0], "evaluation", f"{path}.evaluation")
    return model_of(evaluation, named[1] or None, path=f"{path}.model")
