from django.urls import path

from curation.predictions.approval import views
from curation.predictions.clusters.resource import cluster_list

urlpatterns = [
    path("p/<slug:slug>/samples/predictions/", views.prediction_page, name="prediction-page"),
    path("p/<slug:slug>/samples/clusters/", cluster_list, name="cluster-list"),
    path("p/<slug:slug>/samples/<int:pk>/prediction/", views.sample_prediction, name="sample-prediction"),
]
