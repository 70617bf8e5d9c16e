"""Archive and delete: projects here, other nouns as their apps register them."""
