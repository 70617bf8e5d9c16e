"""Worker processes: their presence, their sandboxes, their housekeeping."""
