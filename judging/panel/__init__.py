"""The panel of judges: what a judge is shown, what it replies, the score."""
