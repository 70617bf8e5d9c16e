"""What an evaluation concludes about each model, its result file, and experiments that train on an export."""
