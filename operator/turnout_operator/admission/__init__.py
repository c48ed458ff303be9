"""The webhooks: pods labelled with a node get its sidecar while the API server admits them, and Turnout's objects are judged.

    serve.py: server.py (HTTPS) ──► injector.py ──► review.py (pure) ──► turnout_operator.injection (pure)
                                └─► validator.py ──► desk.py ──► turnout_api.resolve.Standing (pure)
    keeper.py: certificates.py makes and renews what the server shows, and tells the API server whom to trust;
    or mounted.py: somebody else does

The mutating webhook's configuration, which the chart makes, selects labelled pods of watched namespaces only. So it never stands in
the way of the operator's own pod or of masters' pods, whatever its failurePolicy.
"""
