"""The run kind `probe`: rollouts that go on after a step say what the step is worth."""
