"""Limits of wrong passwords within `AXES_COOLOFF_TIME`: of a user from one address, of an address, of a user.

One address cannot lock a user out for everyone: of each address at most `AXES_FAILURE_LIMIT` wrong passwords count
towards the user's own limit.
"""

import ipaddress

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest

MOST_OF_ADDRESS = 50
MOST_OF_USER = 100


class SignInLimits(AxesDatabaseHandler):
    def get_failures(self, request: HttpRequest, credentials: dict[str, str] | None = None) -> int:
        """Wrong passwords of this user from this address, or the limit where another limit is reached."""
        most = int(settings.AXES_FAILURE_LIMIT)
        address = client_address(request)
        recent = AccessAttempt.objects.filter(attempt_time__gte=get_cool_off_threshold(request))
        of_address = recent.filter(ip_address=address).aggregate(n=Sum("failures_since_start"))["n"] or 0
        of_user = recent.filter(username=get_client_username(request, credentials))
        by_address = dict(of_user.values_list("ip_address").annotate(n=Sum("failures_since_start")))
        here: int = by_address.get(address, 0)
        others = sum(min(n, most) for n in by_address.values())
        return max(here, most) if of_address >= MOST_OF_ADDRESS or others >= MOST_OF_USER else here


def client_address(request: HttpRequest) -> str:
    """The address of the person: behind a trusted proxy the one that it appended to `X-Forwarded-For`."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    if settings.TRUST_PROXY:
        address = request.headers.get("X-Forwarded-For", address).rpartition(",")[2].strip() or address
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return "0.0.0.0"  # noqa: S104 - a socket has no address
