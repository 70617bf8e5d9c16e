"""Archive and delete a project; carry out deletions, also of rows of a project, in batches."""
