"""The axes that a bundle claims, compared with what its files, its programs and its reference show."""
