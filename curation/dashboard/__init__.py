"""Overview, charts, the system page, the demo."""
