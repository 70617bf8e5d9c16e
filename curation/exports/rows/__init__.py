"""From frozen samples to rows, with a reason for each skipped one."""
