"""Profiles of external services: where a key goes, how long it is kept, how to ask for status.

It reads TOML and classifies responses; it opens no journal and sends nothing.
"""
