"""Files of the assistants that people talk to, a module for each layout."""
