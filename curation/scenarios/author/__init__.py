"""The run kind `author`: a teacher model writes bundles."""
