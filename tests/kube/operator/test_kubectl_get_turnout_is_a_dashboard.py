"""`kubectl get turnout`, as it prints: each kind with its columns, of a cluster whose routers run."""

import pytest


@pytest.fixture
async def shown(objects, start, manifests, routers, eventually):
    """Kind → the row of each object, as column → cell."""
    start()
    running = await routers("master", "gpu-a", "gpu-b")
    gpu_b = objects.get("rn", "gpu-b")["spec"]
    seeing = manifests.node("gpu-b", **gpu_b)
    seeing["spec"]["models"][0]["capabilities"] = ["Text", "Vision"]
    objects.apply(
        seeing,
        manifests.link("a-to-b", "gpu-a", "gpu-b"),
        manifests.frontend("assistant", "cc11"),
        manifests.pool("fast", "cc11", "gone"),
        manifests.guardian("sees", "gpu-b"),
        manifests.recipe("studio", "gpu-a"),
        manifests.route_test("decides", "assistant"),
    )

    def table():
        return objects.cluster.kubectl("get", "turnout", "-n", objects.namespace).stdout

    await eventually(lambda: len(rows(table())) == 9 and not pending(table()), "not everything is ready")
    assert running["master"].status().version
    return rows(table())


def rows(text):
    """`kind/name` → its row; a table begins with its heading."""
    found, heading = {}, []
    for line in text.splitlines():
        # columns are cut where they begin: a cell may be empty
        if line.startswith("NAME "):
            names = line.split("   ")
            heading = [(name.strip(), line.index(name.strip())) for name in names if name.strip()]
        elif line.strip():
            ends = [start for _, start in heading[1:]] + [len(line)]
            cells = {name: line[at:end].strip() for (name, at), end in zip(heading, ends, strict=True)}
            found[cells.pop("NAME").replace(".turnout.dev", "")] = cells
    return found


def pending(text):
    """Rows that say nothing of Ready yet; the link is refused, since one end sees and the other does not."""
    return [name for name, row in rows(text).items() if row.get("READY") != ("False" if "link" in name else "True")]


async def test_each_kind_answers_the_first_question_about_it(shown):
    for row in shown.values():
        row.pop("AGE")
    version = shown["routernode/gpu-a"]["BUILD"]
    node = {"SERVING": "1/1", "READY": "True", "REASON": "Ready", "BUILD": version}
    assert version
    assert shown == {
        "routernode/master": node | {"ROLE": "Master", "MODELS": "0/0"},
        "routernode/gpu-a": node | {"ROLE": "Slave", "MODELS": "1/1"},
        "routernode/gpu-b": node | {"ROLE": "Slave", "MODELS": "1/1"},
        "routinglink/a-to-b": {
            "LANE": "Text", "OWNER": "gpu-a", "HELPER": "gpu-b", "WEIGHTS": "", "READY": "False",
            "REASON": "IneligibleLink",
        },
        "frontendmodel/assistant": {"MODEL NAME": "assistant", "MODELS": "1", "READY": "True", "REASON": "Ready"},
        "modelpool/fast": {"POLICY": "", "SERVING": "1/2", "READY": "True", "REASON": "Ready"},
        "guardian/sees": {"FOR": "cluster", "NODE": "gpu-b", "MODEL": "gpu-b-ff", "READY": "True", "REASON": "Ready"},
        "splitrecipe/studio": {"PUBLIC ID": "studio", "SERVING": "1/1", "READY": "True", "REASON": "Ready"},
        "routetest/decides": {
            "RESULT": "Pass", "RULE": "assistant/defaults", "MODEL": "cc11", "REQUIRED": "", "READY": "True",
            "REASON": "Passes",
        },
    }  # fmt: skip
