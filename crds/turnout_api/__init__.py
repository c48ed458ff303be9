"""The language of Turnout: resources, router configuration, wire types and the pure `resolve` between them."""
