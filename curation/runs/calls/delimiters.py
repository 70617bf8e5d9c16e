"""The secret behind the delimiters of texts that others wrote, in requests to models."""

from django.utils.crypto import salted_hmac


def delimiter_secret() -> bytes:
    """Return the secret for `judging.sections`. It changes with the server's `SECRET_KEY`."""
    return salted_hmac("curation.runs.calls.delimiters", "", algorithm="sha256").digest()
