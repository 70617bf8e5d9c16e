"""Harbor, which runs tasks with any agent in sandboxes of any provider. It is a command of its own, not a library here:
it needs Python 3.12, so it has an environment of its own."""
