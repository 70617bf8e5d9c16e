"""The page to change one's password."""

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpResponse
from django.urls import reverse_lazy


class ChangePassword(PasswordChangeView):
    """Django's own view. Other sessions of the user end; tokens stay."""

    template_name = "registration/change_password.html"
    success_url = reverse_lazy("home")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Your password is changed. Your other sessions are signed out.")
        return super().form_valid(form)
