"""SQLite for many writers: `base` is the database backend that `settings.DATABASES` names."""
