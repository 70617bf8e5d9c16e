"""Django's backend of passwords; every page of a signed-in person reads their row (`AUTHENTICATION_BACKENDS`)."""

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User

from curation.web.database.prepared import Prepared

_of_id = Prepared(lambda user: User.objects.filter(pk=user), user=int)


class Backend(ModelBackend):
    def get_user(self, user_id: int) -> User | None:
        user = _of_id.first(user=user_id)
        return user if user and self.user_can_authenticate(user) else None
