"""Profiles of external services: where a key goes, how long the service keeps it, how to check the status.

It reads TOML and classifies responses; it opens no journal and sends nothing.
"""
