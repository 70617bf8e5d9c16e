"""The form in which a bundle is written by hand."""
