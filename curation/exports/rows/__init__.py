"""From frozen samples to rows, with a reason for each that is skipped."""
