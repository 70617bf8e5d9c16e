"""The rules of the leak lint. Each module has `find(case)`, which yields its findings."""
