"""`manage.py second_factor off USER`: for somebody who lost app and recovery codes."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from curation.projects.second_factor.devices import has_second_factor, remove


class Command(BaseCommand):
    help = "Turn a user's second factor off. First make sure that the user asked for it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["off"], help="turn it off")
        parser.add_argument("user", help="the username")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None or not has_second_factor(user):
            raise CommandError(f"There is no user {options['user']!r} with a second factor.")
        remove(user, actor=None)
        self.stdout.write(f"The second factor of {user.username} is off.")
