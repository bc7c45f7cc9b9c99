"""The parent process that starts an agent, decodes how it died and starts it again.

It never runs a tool and never writes a step.
"""
