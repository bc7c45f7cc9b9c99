"""Messages that other processes leave beside a journal, and their application by its writer.

It may write through `store`; it calls no tool and asks no provider.
"""
