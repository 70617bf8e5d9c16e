"""Django's sessions and backend of passwords: every page of a signed-in person reads their session and their row."""

from datetime import datetime

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from curation.web.database.prepared import Prepared

_live = Prepared(lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now), key=str, now=datetime)
_of_id = Prepared(lambda user: User.objects.filter(pk=user), user=int)


class SessionStore(db.SessionStore):
    """`SESSION_ENGINE`."""

    def _get_session_from_db(self) -> Session | None:
        found = _live.first(key=self.session_key or "", now=timezone.now())
        if found is None:
            self._session_key = None
        return found


class Backend(ModelBackend):
    """One of `AUTHENTICATION_BACKENDS`."""

    def get_user(self, user_id: int) -> User | None:
        user = _of_id.first(user=user_id)
        return user if user and self.user_can_authenticate(user) else None
