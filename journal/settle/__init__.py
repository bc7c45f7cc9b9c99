"""Pending intents brought to their end: by a status check, a replay, a stored outcome or a hold.

It carries out what `reconcile` decides; it never calls a model.
"""
