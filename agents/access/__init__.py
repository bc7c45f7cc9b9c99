"""Roles and access checks, one-time sign-in links, and the audit.

It may not know pages or jobs; both call it.
"""
