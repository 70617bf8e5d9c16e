"""`manage.py serve`: the whole product on one machine or in one container, without a sample project."""

import logging
import secrets
import signal
import sys

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections, transaction

from curation.dashboard.demo.supervisor import StartFailed, become_supervisor, lock_data_folder, require_port
from curation.dashboard.system.static_files import collect_static_files

logger = logging.getLogger(__name__)
ADMIN = "admin"


class Command(BaseCommand):
    help = "Migrates the database, makes the first user, then runs web and worker until SIGTERM; its output is the log."

    def handle(self, **options: object) -> None:
        # A container's first process has no default action for signals.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            lock = lock_data_folder(settings.WINNOW_DATA)
            require_port(settings.BIND, settings.PORT)
        except StartFailed as error:
            raise CommandError(str(error)) from None
        call_command("migrate", verbosity=0)
        collect_static_files()
        make_first_user()
        logger.info("Winnow starts on port %s", settings.PORT)
        connections.close_all()
        become_supervisor(settings.WINNOW_DATA, settings.BIND, settings.PORT, lock, logs=None)


def make_first_user() -> None:
    """Make an administrator if there is no user yet. The password is in this line of the log and nowhere else."""
    with transaction.atomic():
        if User.objects.exists():
            return
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMIN, password=password)
    logger.warning("Sign in as %s with the password %s and change it on the page /password/", ADMIN, password)
