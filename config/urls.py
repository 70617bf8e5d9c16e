"""All addresses: the REST API, the pages of each app, sign-in."""

from django.contrib.auth import views as auth_views
from django.urls import include, path

from config.api import api
from curation.projects.second_factor.views import second_factor, second_factor_code
from curation.projects.sign_in import oidc
from curation.projects.sign_in.link import oidc_link
from curation.projects.sign_in.views import ChangePassword, Login, session, signed_in

urlpatterns = [
    path("api/v1/", api.urls),
    path("login/", Login.as_view(redirect_authenticated_user=True), name="login"),
    path("login/oidc/", oidc.oidc_start, name="oidc-start"),
    path("login/oidc/return/", oidc.oidc_return, name="oidc-return"),
    path("login/oidc/link/", oidc_link, name="oidc-link"),
    path("session/", session, name="session"),
    path("session/signed-in/", signed_in, name="signed-in"),
    path("login/code/", second_factor_code, name="second-factor-code"),
    path("second-factor/", second_factor, name="second-factor"),
    path("password/", ChangePassword.as_view(), name="change-password"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("", include("curation.projects.urls")),
    path("", include("curation.notifications.urls")),
    path("", include("curation.webhooks.urls")),
    path("", include("curation.llm.urls")),
    path("", include("curation.runs.urls")),
    path("", include("curation.runs.endpoint_check.views")),
    path("", include("curation.runs.usage.views")),
    path("", include("curation.imports.urls")),
    path("", include("curation.labels.urls")),
    path("", include("curation.samples.urls")),
    path("", include("curation.scenarios.urls")),
    path("", include("curation.trajectories.urls")),
    path("", include("curation.duels.urls")),
    path("", include("curation.review.urls")),
    path("", include("curation.exports.urls")),
    path("", include("curation.predictions.urls")),
    path("", include("curation.evaluations.urls")),
    path("", include("curation.dashboard.urls")),
]
handler400 = "config.shell.bad_request"
handler403 = "config.shell.permission_denied"
handler404 = "config.shell.page_not_found"
handler500 = "config.shell.server_error"
