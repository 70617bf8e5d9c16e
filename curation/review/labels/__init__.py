"""Label a sample: on its page and by REST."""
