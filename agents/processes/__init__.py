"""The dashboard's own processes: one command that starts, watches and stops them.

It may not know what a process does; it knows programs, signs of life and exit codes.
"""
