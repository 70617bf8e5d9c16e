"""The duel engine: plain data in, frozen dataclasses out. Knows neither Django nor a model client."""
