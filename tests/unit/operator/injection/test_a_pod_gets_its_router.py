"""What the sidecar of a pod is told, sees and asks for."""

from typing import Any

from turnout_operator.injection import is_injected


def router(injected: Any) -> dict[str, Any]:
    return injected.template["spec"]["initContainers"][0]


def named(items: list[dict[str, Any]], key: str = "name") -> dict[str, dict[str, Any]]:
    return {item[key]: item for item in items}


def test_it_is_a_native_sidecar_before_all_other_init_containers(injecting: Any, pod: Any) -> None:
    done = injecting()(pod(initContainers=[{"name": "download", "image": "x"}]))

    assert [c["name"] for c in done.template["spec"]["initContainers"]] == ["turnout-router", "download"]
    assert router(done)["restartPolicy"] == "Always"
    assert (done.node, done.changed, done.warnings) == ("gpu-a", True, ())
    assert is_injected(done.template)


def test_it_knows_its_pod_by_the_downward_api(injecting: Any, pod: Any) -> None:
    env = named(router(injecting()(pod()))["env"])

    assert env["TURNOUT_POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert env["TURNOUT_POD_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert env["TURNOUT_NODE"]["value"] == "gpu-a"


def test_it_has_the_secrets_of_its_node_which_may_come_later(injecting: Any, pod: Any) -> None:
    done = injecting()(pod())

    volumes, mounts = named(done.template["spec"]["volumes"]), named(router(done)["volumeMounts"])
    assert volumes["turnout-router"]["secret"] == {"secretName": "turnout-router-gpu-a", "optional": True}
    assert volumes["turnout-token"]["secret"] == {"secretName": "cluster-token", "optional": True}
    assert mounts["turnout-router"]["mountPath"] == "/etc/turnout/router"
    assert mounts["turnout-token"] == {"name": "turnout-token", "mountPath": "/etc/turnout/token", "readOnly": True}
    assert "--config=/etc/turnout/router/router.yaml" in router(done)["args"]


def test_its_store_lives_as_long_as_the_pod(injecting: Any, pod: Any) -> None:
    done = injecting(storeDir="/var/lib/turnout")(pod())

    assert {"name": "turnout-store", "emptyDir": {}} in done.template["spec"]["volumes"]
    assert {"name": "turnout-store", "mountPath": "/var/lib/turnout"} in router(done)["volumeMounts"]


def test_a_store_that_the_pod_brings_is_used(injecting: Any, pod: Any) -> None:
    brought = {"name": "turnout-store", "persistentVolumeClaim": {"claimName": "mine"}}

    done = injecting(storeDir="/var/lib/turnout")(pod(volumes=[brought]))

    assert [v for v in done.template["spec"]["volumes"] if v["name"] == "turnout-store"] == [brought]
    assert {"name": "turnout-store", "mountPath": "/var/lib/turnout"} in router(done)["volumeMounts"]


def test_it_sees_the_folders_of_models_and_cannot_write_there(injecting: Any, pod: Any) -> None:
    template = pod(volumes=[{"name": "weights", "persistentVolumeClaim": {"claimName": "w"}}])
    template["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "root", "mountPath": "/"},
        {"name": "weights", "mountPath": "/models", "subPath": "llama"},
    ]

    done = injecting(fileRoots=["/models/gguf"], sharedDir="/models/shared")(template)

    seen = [mount for mount in router(done)["volumeMounts"] if not mount["name"].startswith("turnout-")]
    assert seen == [{"name": "weights", "mountPath": "/models", "subPath": "llama", "readOnly": True}]


def test_a_folder_that_no_container_mounts_is_a_warning(injecting: Any, pod: Any) -> None:
    done = injecting(fileRoots=["/models"])(pod())

    assert done.warnings == ("/models of gpu-a is in no volume of the pod's containers: its router does not see it",)


def test_each_container_waits_for_the_drain_before_it_is_stopped(injecting: Any, pod: Any) -> None:
    template = pod()
    template["spec"]["containers"].append({"name": "exporter", "image": "x", "lifecycle": {"postStart": {"sleep": {}}}})

    done = injecting()(template, key="pods-own", drain_timeout_s=120)

    for container in done.template["spec"]["containers"]:
        assert container["lifecycle"]["preStop"]["httpGet"] == {
            "path": "/drain",
            "port": 8901,
            "httpHeaders": [{"name": "x-turnout-drain-key", "value": "pods-own"}],
        }
    assert "postStart" in done.template["spec"]["containers"][1]["lifecycle"]
    assert named(router(done)["env"])["TURNOUT_DRAIN_KEY"]["value"] == "pods-own"
    assert done.template["spec"]["terminationGracePeriodSeconds"] == 135


def test_a_hook_that_is_there_is_kept_with_a_warning(injecting: Any, pod: Any) -> None:
    template = pod()
    template["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["save"]}}}

    done = injecting()(template)

    assert done.template["spec"]["containers"] == template["spec"]["containers"]
    assert len(done.warnings) == 1
    assert "llama has a preStop hook of its own" in done.warnings[0]


def test_a_longer_grace_period_stays(injecting: Any, pod: Any) -> None:
    done = injecting()(pod(terminationGracePeriodSeconds=7200))

    assert done.template["spec"]["terminationGracePeriodSeconds"] == 7200


def test_the_template_that_is_given_is_not_changed(injecting: Any, pod: Any) -> None:
    template = pod()

    injecting()(template)

    assert template == pod()
