"""The common parts of every list: parameters, filters, keyset pages."""
