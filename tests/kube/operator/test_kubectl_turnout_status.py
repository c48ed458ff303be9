"""`kubectl turnout status`, run by kubectl, against a real API server and a master that runs behind its Service."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys

import aiohttp
import pytest
import yaml

from turnout_api.instances import ROUTER_PORT

KEY = "a key of a client"


@pytest.fixture
def plugin(cluster, tmp_path):
    """Runs `kubectl turnout status …` as the administrator, or with another kubeconfig; gives what it did."""
    executable = tmp_path / "bin" / "kubectl-turnout"
    executable.parent.mkdir()
    executable.write_text(f"#!{sys.executable}\nfrom turnout_cli.kubectl.main import main\nmain()\n")
    executable.chmod(0o755)

    def run(*arguments, **environment):
        path = f"{executable.parent}:{cluster.environment['PATH']}"
        done = subprocess.run(
            ["kubectl", "turnout", "status", *arguments],
            capture_output=True, text=True, check=False, timeout=60,
            env=os.environ | cluster.environment | {"PATH": path} | environment,
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def own_address():
    """One of this machine's that is not loopback: the API server passes nothing on to 127/8. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return probe.getsockname()[0]


@pytest.fixture
async def master(objects, manifests, start, routers, eventually):
    """A session with the master, a process of its own behind the Service that the operator made; gpu-a as `routers` runs it."""
    start()
    whole = manifests.master()
    del whole["spec"]["publicURL"]
    objects.apply(manifests.token, whole)
    # a token a minute: what a test asks for runs until it leaves
    await routers("master", "gpu-a", own_master=True, decode_tokens_per_second=1 / 60)
    await eventually(lambda: objects.get("service", "master"), "the master has no Service")
    await eventually(lambda: len(objects.config("master")["cluster"]["slave_urls"]) == 1, "the master has no slave")
    host = own_address()
    await eventually(lambda: objects.get("deployment", "turnout-router-master").get("status"), "the master has no pod")
    process = run_master(objects, routers.mounts, host)
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        async with aiohttp.ClientSession(f"http://{host}:{ROUTER_PORT}", headers=headers) as session:
            while "cc11" not in await models(session):
                assert process.poll() is None
                await asyncio.sleep(0.1)
            there = ("get", "endpoints", "master", "-n", objects.namespace, "-o", "jsonpath={.subsets}")
            await eventually(lambda: host in objects.cluster.kubectl(*there).stdout, "the Service leads nowhere")
            yield session
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 30)
        objects.cluster.kubectl("delete", "node", f"machine-{objects.namespace}", "--ignore-not-found")


def run_master(objects, mounts, host):
    """From what the operator delivered, on an address that the API server may call; its pod says that it is there.

    The Deployment has made the pod; there is no machine here that would run it.
    """
    config = yaml.safe_load(yaml.safe_dump(objects.config("master")).replace("/etc/turnout", str(mounts)))
    config["listen"] = {"host": host, "port": ROUTER_PORT, "health_host": "127.0.0.1", "health_port": 0}
    (mounts / "master.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "turnout_router", "--config", str(mounts / "master.yaml")]
    process = subprocess.Popen(command)
    pods = (
        "get",
        "pods",
        "-n",
        objects.namespace,
        "-l",
        "turnout.dev/router=master",
        "-o",
        "jsonpath={.items[*].metadata.name}",
    )
    machine = f"machine-{objects.namespace}"
    objects.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine}})
    for pod in objects.cluster.kubectl(*pods).stdout.split():
        objects.bind(pod, machine)
        ready = [{"type": "Ready", "status": "True"}]
        objects.pod_status(pod, {"phase": "Running", "podIP": host, "podIPs": [{"ip": host}], "conditions": ready})
    return process


async def models(session):
    try:
        async with session.get("/v1/models") as answer:
            return await answer.text()
    except aiohttp.ClientError:
        return ""


async def test_slow_facts_and_live_counts_stand_beside_each_other(objects, plugin, master, eventually):
    asked = {"model": "cc11", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
    request = asyncio.create_task(master.post("/v1/chat/completions", json=asked))

    def shown():
        code, out, err = plugin("-n", objects.namespace, "--output", "json")
        assert code == 0, err
        found = json.loads(out)
        return found if found["live"]["nodes"]["gpu-a"]["in_backends"] == 1 else None

    found = await eventually(shown, "the request is in no backend")
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert found["live"]["missing"] == {}
    assert found["live"]["total"] == {"queued": 0, "held": 0, "lent": 0, "in_backends": 1, "borrowed": 0}
    nodes = {row["name"]: row for row in found["kinds"]["RouterNode"]}
    assert (nodes["gpu-a"]["says"]["role"], nodes["master"]["says"]["role"]) == ("Slave", "Master")


@pytest.mark.usefixtures("master")
async def test_who_has_the_documented_rights_sees_all_and_who_lacks_one_is_told(
    objects, plugin, pytestconfig, tmp_path
):
    role = documented_role(pytestconfig)
    all_rules = role["rules"]
    assert len(all_rules) == 3
    outcomes = {}
    for name, rules in {
        "all": all_rules,
        "no-proxy": all_rules[::2],
        "no-token": all_rules[:2],
        "none": all_rules[1:],
    }.items():
        kubeconfig = person(objects, name, role | {"rules": rules}, tmp_path)
        # in a thread: gpu-a's router runs in this process
        outcomes[name] = await asyncio.to_thread(plugin, "-n", objects.namespace, KUBECONFIG=str(kubeconfig))

    code, out, err = outcomes["all"]
    assert (code, err) == (0, "")
    assert re.search(r"gpu-a +Slave .* 0 +0 +0 +0 +0 ", out)
    assert "all nodes: 0 queued, 0 held, 0 lent, 0 in backends, 0 borrowed" in out
    assert outcomes["no-proxy"][0] == outcomes["no-token"][0] == 1
    assert "you may not reach it through the API server (it takes get on services/proxy)" in outcomes["no-proxy"][2]
    assert "you may not read this" in outcomes["no-token"][2]
    assert "gpu-a" in outcomes["no-token"][1], "slow facts are shown all the same"
    assert (outcomes["none"][0], outcomes["none"][1]) == (2, "")
    assert "you may not read this" in outcomes["none"][2]


def documented_role(pytestconfig):
    """As docs/kubernetes.md has it, with the names of this test."""
    page = (pytestconfig.rootpath / "docs" / "kubernetes.md").read_text()
    blocks = [
        yaml.safe_load(block)
        for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        if "turnout-status" in block
    ]
    (role,) = blocks
    return yaml.safe_load(yaml.safe_dump(role).replace("turnout-token", "token"))


def person(objects, name, role, folder):
    """A kubeconfig of somebody with that role."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": objects.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {"apiVersion": role["apiVersion"], "kind": "RoleBinding", "metadata": {"name": name}}
    objects.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        role | {"metadata": {"name": name}},
        binding | {"roleRef": reference, "subjects": [subject]},
    )
    token = objects.cluster.kubectl("create", "token", name, "-n", objects.namespace).stdout.strip()
    config = yaml.safe_load(objects.cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.usefixtures("crds")
def test_a_namespace_without_anything_says_so(namespace, plugin):
    code, out, err = plugin("-n", namespace)

    assert (code, out) == (2, "")
    assert f"nothing of Turnout is declared in namespace {namespace}" in err


def test_a_master_without_a_router_is_named(objects, start, manifests, plugin):
    start()
    objects.apply(*manifests.in_cluster())
    objects.accepted("routernode", "master")

    code, out, err = plugin("-n", objects.namespace)

    assert code == 1
    assert "gpu-a" in out
    assert "no live counts: master master: nothing answers behind its Service" in err


def test_without_a_master_that_is_accepted_slow_facts_are_shown(objects, start, manifests, plugin):
    start()
    objects.apply(manifests.token, manifests.slave("gpu-a"))
    objects.accepted("routernode", "gpu-a")

    code, out, err = plugin("-n", objects.namespace)

    assert code == 1
    assert "MasterNotFound" in out
    assert "no Master or Standalone is accepted in this namespace" in err


def test_a_cluster_that_is_not_there_is_said(plugin, tmp_path, cluster):
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for each in config["clusters"]:
        each["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "gone").write_text(yaml.safe_dump(config))

    code, _, err = plugin(KUBECONFIG=str(tmp_path / "gone"))

    assert code == 2
    assert "no cluster answers" in err
