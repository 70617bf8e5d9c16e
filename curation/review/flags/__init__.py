"""The flags of a project as a list to work on."""
