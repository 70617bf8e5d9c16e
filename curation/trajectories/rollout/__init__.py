"""The run kind `rollout`: a model works through scenarios."""
