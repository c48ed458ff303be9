"""What routers say stands in the statuses of a real API server: real routers, run from what the operator delivered."""

from turnout_api.lending import OwnWait


def condition(objects, kind, name, type_):
    """A condition of an object as it is now, as (status, reason, message)."""
    found = (objects.get(kind, name) or {}).get("status", {}).get("conditions", [])
    return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == type_), None)


def suspend(master, link):
    """As if own work of the helper had waited long behind what was lent over the link."""
    core = master.lending.service._core
    now = master.clock()
    core._suspensions.used(link, now)
    (helped,) = (known for known in core._links.all if known.name == link)
    waits = [OwnWait(helped.owner, helped.helper.model, helped.lane, 500.0)]
    assert core._suspensions.said("gpu-b", waits, [helped], now, core._settings)


async def test_a_link_that_its_master_suspends_says_so_and_why(objects, start, manifests, routers, eventually):
    start()
    running = await routers("master", "gpu-a", "gpu-b")
    objects.apply(manifests.link("a-to-b", "gpu-a", "gpu-b"))

    def is_(status):
        return lambda: (
            (found := condition(objects, "routinglink", "a-to-b", "LendingSuspended")) and found[0] == status and found
        )

    await eventually(is_("False"), "the master's word did not come")
    await eventually(lambda: running["master"].lending.service._core._links.all, "the link did not come")
    suspend(running["master"], "a-to-b")

    _, reason, message = await eventually(is_("True"), "the link does not say that it is suspended")
    assert reason == "OwnWorkWaited"
    assert message.startswith(
        "own work of gpu-b waited 500 s behind borrowed work; the limit is 120 s. Nothing is lent"
    )
    described = objects.cluster.kubectl("describe", "rl", "a-to-b", "-n", objects.namespace).stdout
    assert "LendingSuspended" in described


async def test_a_backend_that_dies_shows_in_every_status_that_hangs_on_it(
    objects, start, manifests, routers, eventually
):
    start()
    running = await routers("master", "gpu-a")
    objects.apply(manifests.pool("fast", "cc11"))

    def shown():
        pool, node = (objects.get(kind, name) or {} for kind, name in (("modelpool", "fast"), ("routernode", "gpu-a")))
        found = pool.get("status", {}).get("serving"), node.get("status", {}).get("modelsServing")
        return {kind: condition(objects, kind, name, "Ready") for kind, name in (("modelpool", "fast"),)}, found

    await eventually(lambda: shown()[1] == ("1/1", "1/1"), "the model does not serve")
    assert shown()[0]["modelpool"][:2] == ("True", "Ready")
    await routers.backends["gpu-a"].stop()

    await eventually(lambda: shown()[1] == ("0/1", "0/1"), "the statuses say that the model serves")
    assert shown()[0]["modelpool"] == ("False", "NothingServes", "cc11")
    (instance,) = objects.get("routernode", "gpu-a")["status"]["instances"]
    assert instance["healthy"], "the router itself is well"
    assert instance["version"] == running["gpu-a"].status().version
    assert instance["configGeneration"] == objects.config("gpu-a")["generation"]


async def test_a_router_that_dies_makes_its_node_not_ready(objects, start, routers, eventually):
    start()
    running = await routers("master", "gpu-a")
    is_ = {
        reason: lambda reason=reason: (found := condition(objects, "rn", "gpu-a", "Ready")) and found[1] == reason
        for reason in ("Ready", "Unreachable")
    }
    await eventually(is_["Ready"], "the node is not ready")

    await running["gpu-a"].stop(drain_timeout_s=0)

    await eventually(is_["Unreachable"], "the node is ready without a router")
