"""Export to the model formats of other toolkits (ring 2)."""
