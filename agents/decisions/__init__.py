"""What a person may decide about a step, and the check of what was typed.

It may not send, queue or store anything: values in, values out.
"""
