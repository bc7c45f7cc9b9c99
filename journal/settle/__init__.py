"""Bringing pending intents to their end: asking, replaying, adopting, holding.

It acts on what `reconcile` decides; it never calls a model.
"""
