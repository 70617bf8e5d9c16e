"""Layouts of files and rows. Each module reads one layout as sessions in one form."""
