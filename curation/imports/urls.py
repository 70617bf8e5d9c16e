from django.urls import path

from curation.imports.pages import views

urlpatterns = [path("p/<slug:slug>/imports/new/", views.import_new, name="import-new")]
