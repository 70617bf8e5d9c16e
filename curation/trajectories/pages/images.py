"""Serve the images of trajectories to those who may read the project."""

from django.core.files.storage import default_storage
from django.http import HttpRequest, HttpResponse

from curation.projects.access import Access, project_page
from curation.projects.models import Project, Scope
from curation.trajectories.imported.images import key_of
from curation.trajectories.models import TrajectoryImage
from curation.web.files import missing_file
from curation.web.problems import NotFound

# Content has its digest as its name, so it never changes.
CACHED = "private, max-age=31536000, immutable"


def image_response(project: Project, digest: str) -> HttpResponse:
    """Return the file. One that is no image by its content is only downloaded. Raises `NotFound`."""
    row = TrajectoryImage.objects.filter(trajectory__project=project, sha256=digest).first()
    if row is None:
        raise NotFound(f"There is no image {digest[:64]!r} in {project.slug}.")
    key = key_of(project.pk, digest)
    try:
        with default_storage.open(key, "rb") as file:
            response = HttpResponse(file.read(), content_type=row.media_type)
    except FileNotFoundError:
        raise NotFound(missing_file(key)) from None
    if not row.media_type.startswith("image/"):
        response["Content-Disposition"] = f'attachment; filename="{digest}"'
    response["Cache-Control"] = CACHED
    return response


@project_page(Scope.READ, "GET")
def trajectory_image(request: HttpRequest, access: Access, digest: str) -> HttpResponse:
    return image_response(access.project, digest)
