"""A pod is replaced, or evicted by its kubelet, under load: its address may be anybody's then, and here it is soon a stranger's, who tells
what he is asked. He gets no client's request, and no router or status shows the pod.

The master knows the pods of a node by the headless Service alone; see also `tests/kube/operator/test_an_evicted_pod_leaves_no_ghost.py`.
"""

import errno
import json
import sys
from pathlib import Path

import pytest

STREAM_TOKENS = 750
ASKED = 20
SCRATCH_BYTES = 4 << 20
"""Of a volume that may hold a quarter of it."""
CONNECT = "import socket, sys; s = socket.socket(); s.settimeout(10); print(s.connect_ex((sys.argv[1], 8900)))"


@pytest.fixture(scope="module")
def herd(shop):
    """Two pods of one node, each with a volume that it may overfill."""
    node, deployment = shop.copy(
        "gpu-b", "herd", {"id": "herd", "parallel": 4}, replicas=2, flags={"--concurrency": "4"}
    )
    pod = deployment["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "scratch", "mountPath": "/scratch"}]
    shop.apply(node, deployment)
    shop.rolled_out("herd")
    shop.until_served("herd")
    shop.until(lambda: len(healthy(shop)) == 2, "the master does not use both pods")
    yield shop
    shop.remove("herd")


@pytest.fixture
def stranger(herd):
    """Takes over an address, `stranger(address)`; what he was asked, in the end, is `asked()`."""
    processes = []

    class Stranger:
        def __init__(self, address: str) -> None:
            self._process = herd.beside(sys.executable, str(Path(__file__).with_name("stranger.py")), address)
            processes.append(self._process)
            assert json.loads(self._process.stdout.readline()) == {"listening": address}

        def asked(self) -> list[dict[str, str]]:
            said, _ = self._process.communicate(timeout=60)
            return [json.loads(line) for line in said.splitlines()]

    yield Stranger
    for process in processes:
        process.communicate(timeout=60)


def test_a_replaced_pod(herd, stranger):
    old, *_ = herd.pods("app=herd")
    address = address_of(herd, old)
    load = herd.load("herd", STREAM_TOKENS)

    herd.kubectl("delete", "pod", old, "--wait=false")
    herd.gone([old])
    at_the_old_address = stranger(address)
    answers = herd.ask(*[{"model": "herd", "max_tokens": 4}] * ASKED)
    herd.rolled_out("herd")
    no_ghost(herd, old, address)
    answers += herd.ask(*[{"model": "herd", "max_tokens": 4}] * ASKED)

    counts = load.stop()
    assert (counts["errors"], counts["stream"]) == ([], "")
    assert [one["status"] for one in answers] == [200] * 2 * ASKED
    assert requests(at_the_old_address.asked()) == []


def test_an_evicted_pod(herd, stranger):
    old, *_ = herd.pods("app=herd")
    address = address_of(herd, old)
    load = herd.load("herd", STREAM_TOKENS)

    fill = f"open('/scratch/full', 'wb').write(bytes({SCRATCH_BYTES}))"
    herd.kubectl("exec", old, "-c", "sim", "--", "python", "-c", fill)
    herd.until(lambda: evicted(herd, old), lambda: json.dumps(status_of(herd, old)))
    herd.until(lambda: not reachable(herd, address), f"{old} still has its address")
    at_the_old_address = stranger(address)
    herd.rolled_out("herd")
    no_ghost(herd, old, address)
    answers = herd.ask(*[{"model": "herd", "max_tokens": 4}] * ASKED)

    counts = load.stop()
    resets = [error for error in counts["errors"] if not error.startswith("{")]
    assert resets == [], "what it was running is answered, with an error at worst"
    assert counts["asked"] > 50
    assert [one["status"] for one in answers] == [200] * ASKED
    assert requests(at_the_old_address.asked()) == []
    herd.kubectl("delete", "pod", old)


def no_ghost(shop, pod: str, address: str) -> None:
    """Neither what the master knows nor what people see has the pod, or its address."""
    url = f"http://{address}:8900"
    shop.until(lambda: url not in known(shop), lambda: f"the master still knows {known(shop)}")
    shop.until(lambda: len(healthy(shop)) == 2, lambda: f"the master does not use both pods: {known(shop)}")
    shop.until(lambda: not shown(shop, pod, address), lambda: f"still shown: {shown(shop, pod, address)}")


def shown(shop, pod: str, address: str) -> list[str]:
    """Where the status of the node or its Service still has the pod."""
    instances = shop.get("routernode", "herd")["status"].get("instances", [])
    slices = shop.get("endpointslices", "-l", "kubernetes.io/service-name=herd")["items"]
    ends = [end for each in slices for end in each["endpoints"] or []]
    return [each["nodeID"] for each in instances if pod in each["nodeID"] or f"//{address}:" in each["url"]] + [
        one for end in ends for one in end["addresses"] if one == address
    ]


def requests(asked):
    """Of clients: a master that has not heard yet may ask how the node is, or tell it of its links."""
    return [one for one in asked if "/serve/" in one["path"]]


def known(shop) -> dict[str, bool]:
    """URLs of all routers that the master knows, and whether they are well."""
    [master] = shop.pods("turnout.dev/router=master")
    metrics = shop.run("curl", "-sf", f"http://{address_of(shop, master)}:8901/metrics").stdout
    found = [line.split('"') for line in metrics.splitlines() if line.startswith("turnout_node_healthy{")]
    return {url: value.endswith(" 1.0") for _, url, value in found}


def healthy(shop) -> set[str]:
    """URLs of pods of the node that the master uses."""
    ours = {f"http://{address_of(shop, pod)}:8900" for pod in shop.pods("app=herd")}
    return {url for url, well in known(shop).items() if well} & ours


def evicted(shop, pod: str) -> bool:
    """As the kubelet says it. Of a pod whose containers all ended well the phase is `Succeeded` then, with no reason."""
    found = shop.get("events", "--field-selector", f"involvedObject.name={pod},reason=Evicted")["items"]
    return bool(found) and status_of(shop, pod)["phase"] in {"Failed", "Succeeded"}


def address_of(shop, pod: str) -> str:
    return status_of(shop, pod).get("podIP", "")


def status_of(shop, pod: str):
    return shop.get("pod", pod)["status"]


def reachable(shop, address: str) -> bool:
    """Whether anybody has the address."""
    answered = shop.run(sys.executable, "-c", CONNECT, address).stdout
    return int(answered) != errno.EHOSTUNREACH
