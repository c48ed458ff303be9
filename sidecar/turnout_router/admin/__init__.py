"""What people may do: sign in, read and change what routes, and ask what was used.

    people, passwords     who may sign in; hashes, never passwords                       (files, hashing)
    sessions, throttle    who is signed in, how often one may try                        (pure)
    login_api             POST /login, POST /logout, GET /admin/session
    routing_api           frontend models, rules, targets and pools
    documents             those as people send them ↔ as manifests have them           (pure)
    objects               who keeps them: a port, since this router has no copy that it could change
    dry_run_api           what would become of a request
    usage_api, usage      what was used, by whom                                       (usage is pure)
    guard                 every path under /admin: one's own page, a session, an answer in JSON
    errors                what goes wrong, in the one shape of these paths

A session is the only credential here. An API key and the cluster token are for programs: neither opens these paths.
"""
