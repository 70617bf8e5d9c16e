"""REST calls of scenarios. Writing them needs the scope `run`."""

from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse
from django.utils.http import content_disposition_header
from ninja import Query, Router, Status
from pydantic import Field

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Scope
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.scenarios.bundles.document import EXAMPLE, Bundle
from curation.scenarios.bundles.files import bundle_json, file_name, files_of, zip_archive
from curation.scenarios.bundles.harbor import HarborTask, is_harbor, parse_scenario
from curation.scenarios.bundles.harbor_dataset import HarborDataset
from curation.scenarios.bundles.save import delete_scenario, save_scenario
from curation.scenarios.claims.check import clear_axes
from curation.scenarios.filters import ScenarioFilter, ScenarioList
from curation.scenarios.gate.kind import start_gate
from curation.scenarios.models import GateReport, Scenario
from curation.scenarios.pages.measured import measured_by_model, measured_of, refuse_measured
from curation.scenarios.pages.schemas import (
    ADDED,
    AxisOut,
    ClearAxesIn,
    ScenarioOut,
    scenario_out,
    scenario_row,
)
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.scenarios.taxonomy.coverage import CoverageOut, coverage
from curation.web.http.responses import answers_with_file, seen_version, set_etag
from curation.web.ids import find
from curation.web.schemas import Page, StrictModel, answer
from curation.web.text.storable import read_json
from sandbox.harbor.export import IMAGE

router = Router(tags=["scenarios"])
Json = dict[str, object]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": Bundle.model_json_schema(), "example": EXAMPLE}},
    }
}


class GateIn(StrictModel):
    """Options of the gate; all have defaults."""

    repeats: int | None = Field(
        None, ge=0, le=20, examples=[2], description="Repetitions of the reference solution, each in a new sandbox."
    )
    dry_run: bool = Field(False, description="Check only the structure, without a sandbox.")


def _entered(request: HttpRequest, scenario_id: str, scope: str = Scope.READ) -> tuple[Access, Scenario]:
    mine = Scenario.objects.visible_to(principal_of(request).user)
    row = find(mine.with_bundle().select_related("project"), scenario_id, "scenario")
    return enter(request, row.project, scope), row


def _respond(response: HttpResponse, access: Access, row: Scenario) -> Json:
    set_etag(response, row.version)
    copies = Scenario.objects.filter(project=row.project_id).copies_of([row])
    report = GateReport.objects.newest_of([row]).get(row.pk)
    found = scenario_out(row, report, copies, measured_of(access, [row]))
    return {**found, "operators": measured_by_model(access, row)}


@router.get("/schemas/bundle.json", auth=None, response=dict[str, Any], summary="JSON Schema of a bundle")
def bundle_schema(request: HttpRequest) -> Json:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Bundle.model_json_schema()}


@router.get(
    "/projects/{slug}/taxonomy",
    response=answer("TaxonomyOut", data=list[AxisOut], next_cursor=(None, None)),
    summary="Axes and values, with the project's own",
)
def get_taxonomy(request: HttpRequest, slug: str) -> Json:
    return {"data": list(taxonomy_of(enter(request, slug, Scope.READ).project.settings).axes.values())}


@router.get("/projects/{slug}/scenarios", response=Page[ScenarioOut], exclude_unset=True, summary="List scenarios")
def list_scenarios(request: HttpRequest, slug: str, params: Query[ScenarioList]) -> Json:
    access = enter(request, slug, Scope.READ)
    refuse_measured(access, params, params.order())
    page = params.page(params.rows(access.project))
    copies = Scenario.objects.of(access.project).copies_of(page.rows)
    measured = measured_of(access, page.rows)
    if not params.full:
        return page.response(lambda row: scenario_row(row, copies, measured))
    reports = GateReport.objects.newest_of(page.rows)
    return page.response(lambda row: scenario_out(row, reports.get(row.pk), copies, measured))


@router.post(
    "/projects/{slug}/scenarios", response={201: ScenarioOut}, openapi_extra=_BODY, summary="Save a bundle as a draft"
)
def create_scenario(request: HttpRequest, response: HttpResponse, slug: str) -> Status[Json]:
    """Errors have the JSON path of the field; `GET /schemas/bundle.json` returns the schema.

    A Harbor task is `{"family": "harbor", "name": …, "files": [{"path": "task.toml", "content": …}, …]}`.
    """
    access = enter(request, slug, Scope.RUN)
    bundle = parse_scenario(read_json(request.body), taxonomy=taxonomy_of(access.project.settings))
    row = save_scenario(project=access.project, bundle=bundle, user=access.user)[0]
    response["Location"] = f"/api/v1/scenarios/{row.pk}"
    return Status(201, _respond(response, access, row))


@router.get("/projects/{slug}/scenarios/coverage", response=CoverageOut, summary="Coverage over two axes")
def get_coverage(request: HttpRequest, slug: str, rows: str = "task", columns: str = "provider") -> CoverageOut:
    access = enter(request, slug, Scope.READ)
    return coverage(access=access, rows=rows, columns=columns)


# Generators of clients know no ZIP: to them it is bytes.
@router.get(
    "/projects/{slug}/scenarios/bundles.zip",
    openapi_extra=answers_with_file("application/octet-stream", "application/zip", has_etag=False),
    summary="Bundles as a folder of JSON files, zipped",
)
def download_bundles(request: HttpRequest, slug: str) -> FileResponse:
    """All that match the filter of the list."""
    access = enter(request, slug, Scope.READ)
    wanted = ScenarioFilter.from_query(request.GET)
    refuse_measured(access, wanted)
    rows = wanted.apply(Scenario.objects.of(access.project))
    return FileResponse(zip_archive(files_of(rows)), as_attachment=True, filename=f"{slug}-scenarios.zip")


@router.get(
    "/projects/{slug}/scenarios/harbor.zip",
    openapi_extra=answers_with_file("application/octet-stream", "application/zip", has_etag=False),
    summary="Admitted scenarios as a Harbor data set, zipped",
)
def download_harbor(request: HttpRequest, slug: str, image: str = IMAGE) -> FileResponse:
    """Those that match the filter of the list. `image` is the base of the machines of bundles.

    `registry.json` lists the tasks, and `skipped.json` the scenarios that have no counterpart, with the reason.
    """
    access = enter(request, slug, Scope.READ)
    query = request.GET.copy()
    query.pop("image", None)
    wanted = ScenarioFilter.from_query(query)
    refuse_measured(access, wanted)
    dataset = HarborDataset(access.project, wanted.apply(Scenario.objects.of(access.project)), image)
    return FileResponse(dataset.archive(), as_attachment=True, filename=f"{slug}-harbor.zip")


@router.get("/scenarios/{scenario_id}", response=ScenarioOut, summary="One scenario: bundle, status, gate report")
def get_scenario(request: HttpRequest, response: HttpResponse, scenario_id: str) -> Json:
    return _respond(response, *_entered(request, scenario_id))


@router.get(
    "/scenarios/{scenario_id}/bundle.json",
    openapi_extra=answers_with_file("application/json"),
    summary="The bundle alone, as a file",
)
def get_bundle(request: HttpRequest, scenario_id: str) -> HttpResponse:
    row = _entered(request, scenario_id)[1]
    response = HttpResponse(bundle_json(row), content_type="application/json")
    response["Content-Disposition"] = content_disposition_header(True, file_name(row.name)) or "attachment"
    set_etag(response, row.version)
    return response


@router.put("/scenarios/{scenario_id}", response=ScenarioOut, openapi_extra=_BODY, summary="Replace a bundle")
def put_scenario(request: HttpRequest, response: HttpResponse, scenario_id: str) -> Json:
    """The edited scenario is a draft again. Fields that `GET` adds to the bundle are ignored."""
    access, row = _entered(request, scenario_id, Scope.RUN)
    seen = seen_version(request, row.version)
    document = read_json(request.body)
    if isinstance(document, dict):
        # The answer of `GET` has the fields of both families; those of the other one are empty.
        own = (HarborTask if is_harbor(document) else Bundle).model_fields.keys() | {"family"}
        other = ScenarioOut.model_fields.keys() - own
        document = {key: value for key, value in document.items() if key not in ADDED and (value or key not in other)}
    bundle = parse_scenario(document, taxonomy=taxonomy_of(access.project.settings))
    row, _ = save_scenario(project=access.project, bundle=bundle, user=access.user, scenario=row, seen_version=seen)
    return _respond(response, access, row)


@router.delete("/scenarios/{scenario_id}", response={204: None}, summary="Delete a scenario without trajectories")
def remove_scenario(request: HttpRequest, scenario_id: str) -> Status[None]:
    access, row = _entered(request, scenario_id, Scope.RUN)
    seen_version(request, row.version)
    delete_scenario(access=access, scenario=row)
    return Status(204, None)


@router.post("/scenarios/{scenario_id}/gate", response={202: RunOut}, summary="Gate a scenario")
def gate_scenario(
    request: HttpRequest, response: HttpResponse, scenario_id: str, body: GateIn | None = None
) -> Status[Json]:
    access, row = _entered(request, scenario_id, Scope.RUN)
    given = body or GateIn.model_validate({})
    run = start_gate(access=access, wanted=ScenarioFilter.of_one(row.pk), repeats=given.repeats, dry_run=given.dry_run)
    return accepted_run(response, run)


@router.post("/scenarios/{scenario_id}/clear-axes", response=ScenarioOut, summary="Clear mismatches of axes")
def clear_scenario_axes(
    request: HttpRequest, response: HttpResponse, scenario_id: str, body: ClearAxesIn
) -> dict[str, object]:
    """A held scenario without another mismatch is admitted. `If-Match` refuses an edited bundle."""
    access, row = _entered(request, scenario_id, Scope.RUN)
    seen_version(request, row.version)
    clear_axes(access=access, scenario=row, axes=body.axes, comment=body.comment, seen_version=row.version)
    return _respond(response, *_entered(request, scenario_id))
