"""Ring 2: the model formats of other toolkits."""
