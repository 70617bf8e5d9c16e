"""The Django apps, one folder per noun. Imports go down the list in `docs/architecture.md`, never up."""

__version__ = "0.1.0"  # as in pyproject.toml, which is not part of the image
