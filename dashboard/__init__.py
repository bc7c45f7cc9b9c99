"""The Django project: what a person sees of the fleet, and what the person may do from there.

It asks agents/ and journal/ for facts and never writes to a journal: a decision is a job for the worker."""
