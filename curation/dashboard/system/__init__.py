"""The system page, health checks and metrics."""
