"""A project's admitted scenarios as an environment for trainers."""
