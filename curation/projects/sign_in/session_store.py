"""Django's sessions of the database; every page of a signed-in person reads one (`SESSION_ENGINE`)."""

from datetime import datetime

from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from curation.web.database.prepared import Prepared

_live = Prepared(lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now), key=str, now=datetime)


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        found = _live.first(key=self.session_key or "", now=timezone.now())
        if found is None:
            self._session_key = None
        return found
