"""The leak lint: does an answer name something that only the hidden pull request contains? Start at `lint`."""
