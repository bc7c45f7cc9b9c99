"""The decisions a person may make about a step, and the check of a person's input.

It may not send, queue or store anything: values in, values out.
"""
