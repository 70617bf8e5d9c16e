"""The run kind `probe`: rollouts that go on after a step tell the value of the step."""
