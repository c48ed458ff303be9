"""What a RouterNode must fulfil."""

from collections.abc import Iterator

from turnout_api import identity
from turnout_api.resolve.interface import Placement, Problem, Where
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World, identities
from turnout_api.resources import Backend, RouterNode
from turnout_api.resources.refusals import Path
from turnout_api.vocabulary import SUPPORTED_FAMILIES, Family, Role


def own_problems(node: RouterNode, placement: Placement) -> Iterator[Problem]:
    """What it knows about itself and where it runs."""
    for index, backend in enumerate(node.spec.backends):
        if backend.family not in SUPPORTED_FAMILIES:
            yield _unsupported(backend, ("spec", "backends", index, "family"))
    if placement.where is Where.CLUSTER:
        yield from _missing_in_cluster(node)
    if node.spec.role is Role.SLAVE and not placement.place(node).slave_urls:
        yield Problem(
            Reason.UNREACHABLE_NODE,
            f"the master cannot reach {node.name}: give publicURL, or label its pods turnout.dev/node: {node.name}",
            ("spec", "publicURL"),
        )


def dependent_problems(node: RouterNode, world: World) -> Iterator[Problem]:
    """What it needs of other nodes: a slave, its master."""
    reference = node.spec.master_ref
    if reference is None:
        return
    path: Path = ("spec", "masterRef", "name")
    missing = world.missing_node(reference.name, path)
    if missing:
        yield Problem(Reason.MASTER_NOT_FOUND, missing.message, path)
        return
    master = world.nodes[reference.name]
    if master.spec.role is not Role.MASTER:
        yield Problem(
            Reason.NOT_A_MASTER,
            f"masterRef names {master.name}, which is a {master.spec.role}: name the Master, or change its role",
            path,
        )
    elif not world.placement.place(master).url:
        yield _master_without_url(master)


def warnings(node: RouterNode, world: World) -> Iterator[Problem]:
    """What its author should know."""
    if world.placement.where is Where.ANYWHERE:
        yield from _missing_in_cluster(node)
    if node.spec.tls is not None:
        yield Problem(
            Reason.NOT_SERVED_YET,
            "this version does not serve TLS: what goes between clients and routers is not encrypted",
            ("spec", "tls"),
        )
    if world.nodes.get(node.name) is not node:  # it is not served, or an older spec of it is
        return
    for index, (public_id, model_identity) in enumerate(identities(node)):
        name = identity.public_name(world.ledger, public_id, model_identity)
        if name != public_id:
            yield Problem(
                Reason.NAME_SUFFIXED,
                f"{public_id} is served as {name}: the first model with this public ID has another configuration, "
                f"weights or assets, and keeps the name; give this one a publicID of its own, or both one configHash "
                f"if they answer alike",
                ("spec", "models", index),
            )


def _unsupported(backend: Backend, path: Path) -> Problem:
    supported = ", ".join(sorted(SUPPORTED_FAMILIES))
    return Problem(
        Reason.FAMILY_NOT_SUPPORTED,
        f"backend {backend.name}: family {backend.family} is not supported by this version, which has {supported}; "
        f"{Family.OPENAI} fits any server with that API",
        path,
    )


def _missing_in_cluster(node: RouterNode) -> Iterator[Problem]:
    """What only local mode can do without."""
    if node.spec.role is not Role.STANDALONE and node.spec.token_secret_ref is None:
        yield Problem(
            Reason.TOKEN_MISSING,
            f"in a cluster a {node.spec.role} needs tokenSecretRef: the Secret with the cluster token",
            ("spec",),
        )
    for index, backend in enumerate(node.spec.backends):
        if backend.family is not Family.PROCESS and not backend.url:
            yield Problem(
                Reason.BACKEND_WITHOUT_URL,
                f"in a cluster backend {backend.name} needs url: only family Process is started from command there",
                ("spec", "backends", index),
            )


def _master_without_url(master: RouterNode) -> Problem:
    return Problem(
        Reason.UNREACHABLE_NODE,
        f"nothing says under which URL slaves reach their master {master.name}: give it publicURL",
        ("spec", "masterRef"),
    )
