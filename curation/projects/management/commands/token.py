"""`manage.py token create|list|revoke`: API tokens from the command line of the server."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from curation.projects.access import Principal
from curation.projects.models import Scope, Token
from curation.projects.tokens.issue import MAX_DAYS, create_token, revoke_token
from curation.web.ids import id_number
from curation.web.problems import Problem


class Command(BaseCommand):
    help = "Create, list and revoke API tokens. `create` prints nothing but the token, which is shown only once."
    # Nothing but the token may be printed: scripts use TOKEN=$(manage.py token create …).
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|revoke")
        create = actions.add_parser("create", help="create a token and print it")
        create.add_argument("--user", required=True, help="the user who gets the token")
        create.add_argument("--scopes", default="read", help=f"comma list: {', '.join(Scope.values)} (default read)")
        create.add_argument("--name", default="", help="the purpose of the token")
        create.add_argument("--expires-days", type=int, help=f"1 to {MAX_DAYS}; without it the token never expires")
        listing = actions.add_parser("list", help="list tokens, without their secrets")
        listing.add_argument("--user", help="only tokens of this user")
        revoke = actions.add_parser("revoke", help="revoke a token")
        revoke.add_argument("id", help="its id, as `list` shows it")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["action"] == "create":
                self._create(options["user"], options["scopes"], options["name"], options["expires_days"])
            elif options["action"] == "list":
                self._list(options["user"])
            else:
                self._revoke(options["id"])
        except Problem as problem:
            raise CommandError(problem.detail) from None

    def _create(self, username: str, scopes: str, name: str, days: int | None) -> None:
        _, secret = create_token(
            Principal(_user(username), frozenset(Scope)),
            scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
            name=name,
            expires_in_days=days,
        )
        self.stdout.write(secret)

    def _list(self, username: str | None) -> None:
        rows = Token.objects.select_related("user")
        if username:
            rows = rows.filter(user=_user(username))
        for row in rows:
            ends = f"{row.expires_at:%Y-%m-%d %H:%M} UTC" if row.expires_at else "never"
            used = f"{row.last_used_at:%Y-%m-%d %H:%M} UTC" if row.last_used_at else "never"
            scopes = ",".join(row.scopes)
            self.stdout.write(
                f"{row.pk}\t{row.prefix}…\t{row.user.get_username()}\t{scopes}\texpires {ends}\tused {used}\t{row.name}"
            )

    def _revoke(self, token_id: str) -> None:
        row = Token.objects.select_related("user").filter(pk=id_number(token_id) or 0).first()
        if row is None:
            raise CommandError(f"There is no token {token_id!r}; `token list` shows the ids.")
        revoke_token(Principal(row.user, frozenset(Scope)), token_id)
        self.stderr.write(f"Revoked {row.prefix}… of {row.user.get_username()}.")


def _user(username: str) -> User:
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active user {username!r}.")
    return user
