"""The agent in the sandbox: the loop, its environments, replay and pairs."""
