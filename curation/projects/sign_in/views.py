"""The pages to sign in and to change one's password."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, PasswordChangeView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from django.views.generic.base import ContextMixin

from curation.projects.access import principal_of
from curation.projects.models import ServiceAccount
from curation.projects.second_factor.devices import has_second_factor
from curation.projects.second_factor.views import ask_for_code


class _WithProvider(ContextMixin):
    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        return super().get_context_data(**kwargs) | {"oidc_name": settings.OIDC_NAME if settings.OIDC_ISSUER else ""}


class SignInForm(AuthenticationForm):
    def confirm_login_allowed(self, user: User) -> None:
        super().confirm_login_allowed(user)
        if ServiceAccount.objects.filter(user=user).exists():
            raise ValidationError("This is a service account. It works by its tokens only.")


class Login(_WithProvider, LoginView):
    form_class = SignInForm

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        if has_second_factor(user):
            return ask_for_code(self.request, user, self.get_success_url())
        return super().form_valid(form)


class ChangePassword(_WithProvider, PasswordChangeView):
    """Django's own view. Other sessions of the user end; tokens stay."""

    template_name = "registration/change_password.html"
    success_url = reverse_lazy("home")

    def get_form(self, form_class: type[PasswordChangeForm] | None = None) -> PasswordChangeForm:
        form: PasswordChangeForm = super().get_form(form_class)
        form.fields["old_password"].widget.attrs.pop("autofocus")  # the page has other actions before it
        return form

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Your password is changed. Your other sessions are signed out.")
        return super().form_valid(form)


@require_GET
@never_cache
@login_required
def session(request: HttpRequest) -> JsonResponse:
    """The signed-in user, for the script of a page that may be older than the session."""
    user = principal_of(request).user
    return JsonResponse({"user": user.pk, "name": user.get_username(), "csrf": get_token(request)})


@require_GET
@login_required
def signed_in(request: HttpRequest) -> HttpResponse:
    """The last page of a tab that a signed-out page has opened."""
    return render(request, "registration/signed_in.html")
