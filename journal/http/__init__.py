"""The HTTP client and the frozen requests it sends.

It owns httpx2, `env()` references and deadlines; it never reads or writes a journal.
"""
