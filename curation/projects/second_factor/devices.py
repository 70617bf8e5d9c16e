"""Enrol, verify and remove the second factor of an account. django-otp stores it, and slows down guessing."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from curation.projects.models import AuditEntry
from curation.web.problems import Invalid

RECOVERY_CODES = 10
# In the session: it was opened with a code or by the provider of single sign-on.
VERIFIED = "second_factor_verified"
WRONG = "This code is not valid now. Enter the newest code of your app; after a wrong one, wait a few seconds."


def has_second_factor(user: User) -> bool:
    found: bool = TOTPDevice.objects.filter(user=user, confirmed=True).exists()
    return found


def open_enrolment(user: User) -> Any:
    """The device that the person is setting up; it counts for nothing until `confirm`."""
    return TOTPDevice.objects.filter(user=user, confirmed=False).first() or TOTPDevice.objects.create(
        user=user, name="app", confirmed=False
    )


def confirm(user: User, code: str) -> list[str]:
    """Turn the second factor on, if the code is the app's, and return new recovery codes."""
    with transaction.atomic():
        # The row of the user is the lock of their devices.
        User.objects.select_for_update().get(pk=user.pk)
        device = TOTPDevice.objects.filter(user=user, confirmed=False).first()
        accepted = device is not None and not has_second_factor(user) and device.verify_token(code)
        if accepted:
            TOTPDevice.objects.filter(pk=device.pk).update(confirmed=True)
            AuditEntry.record(actor=user, action="second_factor.enable", subject=user.username)
            return _new_codes(user)
    raise _wrong()


def verify(user: User, code: str) -> bool:
    """Whether this is the app's code, not used before, or a recovery code, which is then used up."""
    code = code.replace(" ", "").lower()
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        model = TOTPDevice if code.isdigit() and len(code) == 6 else StaticDevice
        device = model.objects.filter(user=user, confirmed=True).first()
        if device is None or not device.verify_token(code):
            return False
        if model is StaticDevice:
            left = StaticToken.objects.filter(device=device).count()
            AuditEntry.record(
                actor=user, action="second_factor.recover", subject=user.username, data={"codes_left": left}
            )
    return True


def renew_codes(user: User, code: str) -> list[str]:
    """Replace the recovery codes; needs a valid code."""
    if not verify(user, code):
        raise _wrong()
    with transaction.atomic():
        AuditEntry.record(actor=user, action="second_factor.new_codes", subject=user.username)
        return _new_codes(user)


def turn_off(user: User, code: str) -> None:
    """Remove the second factor; needs a valid code."""
    if not verify(user, code):
        raise _wrong()
    remove(user, actor=user)


def remove(user: User, *, actor: User | None) -> None:
    """Remove the second factor of somebody who lost it."""
    with transaction.atomic():
        TOTPDevice.objects.filter(user=user).delete()
        StaticDevice.objects.filter(user=user).delete()
        AuditEntry.record(actor=actor, action="second_factor.disable", subject=user.username)


def _new_codes(user: User) -> list[str]:
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="recovery")
    codes = [StaticToken.random_token() for _ in range(RECOVERY_CODES)]
    StaticToken.objects.bulk_create(StaticToken(device=device, token=code) for code in codes)
    return codes


def _wrong() -> Invalid:
    return Invalid.at("code", WRONG)
