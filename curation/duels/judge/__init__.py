"""The stage judge: every judge reads every duel."""
