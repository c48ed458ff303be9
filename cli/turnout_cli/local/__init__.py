"""`turnout up`: a whole cluster on loopback from the manifests that Kubernetes would get.

`desired` resolves manifests, `plan` turns the resolution into processes and says what an edit changes, `health` says what
a cluster still waits for: these decide. `reading` gets the manifests and `watching` tells that they may have changed,
`state` keeps the state folder, `router_process` one router, `supervisor` carries everything out.
"""
