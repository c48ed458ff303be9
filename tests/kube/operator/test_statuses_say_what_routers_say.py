"""What routers say stands in the statuses of a real API server: real routers, run from what the operator delivered."""


def condition(objects, kind, name, type_):
    """A condition of an object as it is now, as (status, reason, message)."""
    found = (objects.get(kind, name) or {}).get("status", {}).get("conditions", [])
    return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == type_), None)


def suspend(master, link):
    """As if own work of the helper had waited long behind what was lent over the link."""
    core = master.lending.service._core
    now = master.clock()
    core._suspensions.used(link, now)
    helped = [known for known in core._links.all if known.name == link]
    assert core._suspensions.said("gpu-b", 500.0, helped, now, core._settings)


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
