"""An evaluation's conclusion about each model, its result file, and experiments that train on an export."""
