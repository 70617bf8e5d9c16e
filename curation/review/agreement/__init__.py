"""Where people agree and disagree: samples to adjudicate, and figures."""
