from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

OF_OTHERS = 0o077


@register(Tags.security)
def private_data(**_: object) -> list[CheckMessage]:
    """Warn where others on the machine can read the data folder or the database."""
    paths = {Path(settings.WINNOW_DATA): 0o700}
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "config.sqlite3":
        paths[Path(database["NAME"])] = 0o600
    return [
        Warning(
            f"Others on this machine may reach {path}: its mode is {path.stat().st_mode & 0o777:04o}.",
            hint=f"chmod {mode:o} {path}",
            id="winnow.W001",
        )
        for path, mode in paths.items()
        if path.exists() and path.stat().st_mode & OF_OTHERS
    ]


class WebConfig(AppConfig):
    name = "curation.web"
