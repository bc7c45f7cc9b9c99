"""The operator's side of the fleet: journal files, index, spend, disk, alerts, the worker's jobs, watch and the demo.

It may import `journal` and never `dashboard`; it shows no page but the demo's button.
"""
