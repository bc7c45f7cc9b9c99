"""The worker's jobs: asked for, queued, claimed, carried out and followed to their end.

Only `queue` may touch django-q2; nothing here shows a page or keeps the index.
"""
