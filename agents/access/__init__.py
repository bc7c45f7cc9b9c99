"""Who may do what, the one-time sign-in links, and the audit of what was done and refused.

It may not know pages or jobs; both ask it.
"""
