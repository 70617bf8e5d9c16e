"""The panel of judges: prompts, replies and scores."""
