"""Assignments of samples to reviewers, targets per reviewer, and second opinions."""
