"""The demo: three agents, the world they act on, and a director that kills them at telling moments.

Only its own commands import it. Its parts of product pages are template tags, and they are empty without the demo.
"""
