"""The mutating webhook: pods labelled with a node get its sidecar while the API server admits them.

    server.py (HTTPS) ──► injector.py ──► review.py (pure) ──► turnout_operator.injection (pure)
    keeper.py: certificates.py makes and renews what the server shows, and tells the API server whom to trust

The webhook's configuration, which the chart makes, selects labelled pods of watched namespaces only. So it never stands in
the way of the operator's own pod or of masters' pods, whatever its failurePolicy.
"""
