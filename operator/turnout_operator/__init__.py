"""The Kubernetes operator: reads resources, resolves them, delivers configuration and writes status.

One round for a namespace reads everything, plans all writes (pure), and carries them out:

    watch.py  ──► worker.py ──► rounds.py: read (api.py) → plan (plan.py) → write (api.py) → nudge (nudge.py)

What a round writes follows from what is there, not from what happened: events only say that it is time for one. So a
missed event, a restart or a second look changes nothing, and a steady cluster is not written to.
"""
