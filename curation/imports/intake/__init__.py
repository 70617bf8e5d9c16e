"""Sources that are not sent by a person: spans that exporters send, and files that appear in a watched folder."""
