"""The Django apps, one folder per noun. Imports go down the list in `docs/architecture.md`, never up."""
