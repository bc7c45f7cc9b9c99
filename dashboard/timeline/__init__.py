"""The drawing of steps in time: the axis, the spans, the layout of bars and restarts, and each step's state in words.

It is pure: values in, values out, and no model, reader or request."""
