"""The questions of a project, on the settings tab *Labels* and by REST."""
