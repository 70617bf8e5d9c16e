"""The run kind `pairs`: kept against rejected trajectories."""
