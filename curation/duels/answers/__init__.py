"""The stages `king` and `challenger`: answers to prompts."""
