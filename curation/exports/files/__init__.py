"""From rows to files: manifest, card, archive, download."""
