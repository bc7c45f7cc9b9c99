"""The pure decision about a pending intent: what recovery does next.

It takes values and returns an action; it reads no file, no clock and no network.
"""
