"""API families of clients: paths, error shapes, model names in bodies, translation."""
