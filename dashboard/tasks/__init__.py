"""The list of tasks and the page of one task: its sentence, its timeline and its branches.

It reads one journal under one reader or the fleet index, and decides nothing."""
