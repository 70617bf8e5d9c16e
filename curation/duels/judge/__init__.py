"""The stage `judge`: each judge reads each duel."""
