"""Models of people's decisions, and groups of texts that are alike, by scikit-learn and cleanlab.

They are the extra `predict`, and take a second to import: only workers import these modules, and only when they fit.
"""
