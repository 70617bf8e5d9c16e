"""The uplift experiment: what curation bought, measured by small models that are trained on two exports."""
