"""The list of samples: filters, search, saved views."""
