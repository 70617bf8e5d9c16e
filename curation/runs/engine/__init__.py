"""How runs are worked on: items are claimed, driven, ended, and taken up again when a worker dies."""
