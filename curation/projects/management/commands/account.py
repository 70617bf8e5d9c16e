"""`manage.py account NAME`: make an account for a person, who then joins projects by invitation."""

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils.crypto import get_random_string

from curation.projects.models import AuditEntry

PASSWORD_LENGTH = 16


class Command(BaseCommand):
    help = "Make an account for a person and print its first password, which is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the username: letters, digits and @ . + - _")
        parser.add_argument(
            "--staff", action="store_true", help="may create projects and add users without an invitation"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        password = get_random_string(PASSWORD_LENGTH)
        user = User(username=options["name"], is_staff=options["staff"])
        user.set_password(password)
        try:
            user.full_clean()
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        with transaction.atomic():
            user.save()
            AuditEntry.record(actor=None, action="account.create", subject=user.username, data={"staff": user.is_staff})
        self.stdout.write(f"The account {user.username} is made. Its password is {password}")
        self.stdout.write("Let the person change it on the page Account: the name at the foot of the sidebar.")
