"""The taxonomy, bundles, authoring, the reference gate."""
