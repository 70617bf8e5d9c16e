"""Files that agents and their tools write, a module for each layout."""
