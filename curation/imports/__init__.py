"""Imports: files and URLs read row by row, for every part that takes rows in.

It lies below the apps that take rows in (scenarios, duels, evaluations): each registers an `ImportKind` here.
"""
