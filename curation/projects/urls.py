from django.urls import path

from curation.projects import service_accounts as service_views
from curation.projects.instructions import views as instruction_views
from curation.projects.invitations import views as invitation_views
from curation.projects.members import views as member_views
from curation.projects.pages import views
from curation.projects.preferences.views import preferences_page
from curation.projects.removal import views as removal_views
from curation.projects.tokens import views as token_views

SETTINGS = "p/<slug:slug>/settings"

urlpatterns = [
    path("", views.home, name="home"),
    path("projects/new/", views.project_new, name="project-new"),
    path(f"{SETTINGS}/", views.settings, name="settings"),
    path(f"{SETTINGS}/archive/", removal_views.project_archive, name="project-archive"),
    path(f"{SETTINGS}/delete/", removal_views.project_delete, name="project-delete"),
    path("deletions/<str:pk>/", removal_views.deletion_page, name="deletion-page"),
    path("preferences/", preferences_page, name="preferences"),
    path("audit/", removal_views.server_audit, name="server-audit"),
    path(f"{SETTINGS}/guidelines/preview/", views.guidelines_preview, name="guidelines-preview"),
    path(f"{SETTINGS}/rules/", views.settings_rules, name="settings-rules"),
    path(f"{SETTINGS}/rules/toml/", views.settings_toml, name="settings-toml"),
    path(f"{SETTINGS}/rules/change/", views.settings_change, name="settings-change"),
    path(f"{SETTINGS}/instructions/", instruction_views.instructions_list, name="instructions-list"),
    path(f"{SETTINGS}/instructions/<slug:name>/", instruction_views.instructions, name="instructions"),
    path(f"{SETTINGS}/instructions/<slug:name>/diff/", instruction_views.instructions_diff, name="instructions-diff"),
    path(
        f"{SETTINGS}/instructions/<slug:name>/restore/",
        instruction_views.instructions_restore,
        name="instructions-restore",
    ),
    path(f"{SETTINGS}/members/", member_views.member_list, name="member-list"),
    path(f"{SETTINGS}/members/add/", member_views.member_add, name="member-add"),
    path(
        f"{SETTINGS}/invitations/<str:invitation_id>/revoke/",
        invitation_views.invitation_revoke,
        name="invitation-revoke",
    ),
    path("invitations/<str:secret>/", invitation_views.invitation, name="invitation"),
    path("invitations/<str:invitation_id>/accept/", invitation_views.invitation_accept, name="invitation-accept"),
    path(f"{SETTINGS}/members/<str:username>/role/", member_views.member_change, name="member-change"),
    path(f"{SETTINGS}/members/<str:username>/remove/", member_views.member_remove, name="member-remove"),
    path(f"{SETTINGS}/tokens/", token_views.token_list, name="token-list"),
    path(f"{SETTINGS}/tokens/<str:token_id>/revoke/", token_views.token_revoke, name="token-revoke"),
    path(f"{SETTINGS}/service-accounts/", service_views.service_accounts, name="service-accounts"),
    path(f"{SETTINGS}/service-accounts/<str:name>/tokens/", service_views.service_token, name="service-token"),
    path(
        f"{SETTINGS}/service-accounts/<str:name>/tokens/<str:token_id>/revoke/",
        service_views.service_token_revoke,
        name="service-token-revoke",
    ),
    path(
        f"{SETTINGS}/service-accounts/<str:name>/remove/",
        service_views.service_account_remove,
        name="service-account-remove",
    ),
    path(f"{SETTINGS}/audit/", member_views.audit_list, name="audit-list"),
]
