"""The stages of a recipe, a module each: what it works on, what it does, and what it says of it.

`stage` is what they have in common. Their order, and the rule by which a stage is done, or is not
done again, stand in `recipes/pipeline.py`.
"""
