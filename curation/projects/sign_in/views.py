"""The pages to sign in and to change one's password."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.views.generic.base import ContextMixin


class _WithProvider(ContextMixin):
    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(**kwargs) | {"oidc_name": settings.OIDC_NAME if settings.OIDC_ISSUER else ""}


class Login(_WithProvider, LoginView):
    """Django's own view, with the button of the provider."""


class ChangePassword(_WithProvider, PasswordChangeView):
    """Django's own view. Other sessions of the user end; tokens stay."""

    template_name = "registration/change_password.html"
    success_url = reverse_lazy("home")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Your password is changed. Your other sessions are signed out.")
        return super().form_valid(form)
