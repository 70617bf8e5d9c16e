"""Model calls: ask, record, pay."""
