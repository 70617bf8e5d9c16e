"""The overview of a project and its charts."""
