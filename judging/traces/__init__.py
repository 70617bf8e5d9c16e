"""Model calls in the traces and logs of other tools, as chat messages."""
