"""Decisions on one sample, their undo, revisions and drafts."""
