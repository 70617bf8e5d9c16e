from tests.driving import storage  # noqa: F401 - a fixture of every test here
