"""Files of agents that worked on tasks, and traces, a module for each layout."""
