"""What every list shares: parameters, filters, keyset pages."""
