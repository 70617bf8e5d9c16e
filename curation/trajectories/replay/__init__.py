"""The run kind `replay`: the commands of a trajectory once more."""
