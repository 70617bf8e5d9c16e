"""The *Test* button of a model endpoint: one small call, made as a run."""
