"""The pure decision what a pending intent needs next.

It takes values and returns an action; it reads no file, no clock and no network.
"""
