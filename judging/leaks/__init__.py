"""The leak lint: does an answer name what only the hidden pull request can have told it?"""
