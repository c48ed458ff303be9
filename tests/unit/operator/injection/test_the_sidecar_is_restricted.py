"""The sidecar keeps no pod from the Pod Security standard `restricted`: its rules for containers and volumes, as published."""

from typing import Any

ALLOWED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip


def violations(spec: dict[str, Any]) -> list[str]:
    """Of the containers and volumes; the pod's own fields are its author's."""
    found = []
    for container in [*spec.get("initContainers", []), *spec.get("ephemeralContainers", [])]:
        context = container.get("securityContext", {})
        rules = {
            "privileged": not context.get("privileged"),
            "allowPrivilegeEscalation": context.get("allowPrivilegeEscalation") is False,
            "capabilities": context.get("capabilities", {}) == {"drop": ["ALL"]},
            "runAsNonRoot": context.get("runAsNonRoot") is True,
            "runAsUser": context.get("runAsUser") != 0,
            "seccompProfile": context.get("seccompProfile", {}).get("type") in {"RuntimeDefault", "Localhost"},
            "procMount": "procMount" not in context,
            "hostPorts": all("hostPort" not in port for port in container.get("ports", [])),
            "probes": all("host" not in container[p]["httpGet"] for p in container if p.endswith("Probe")),
        }
        found += [f"{container['name']}: {rule}" for rule, kept in rules.items() if not kept]
    found += [v["name"] for v in spec.get("volumes", []) if not set(v) - {"name"} <= ALLOWED_VOLUMES]
    return found


def test_it_breaks_no_rule(injecting: Any, pod: Any) -> None:
    done = injecting(storeDir="/var/lib/turnout")(pod())

    assert violations(done.template["spec"]) == []


def test_the_rules_find_what_breaks_them(injecting: Any, pod: Any) -> None:
    done = injecting()(pod(volumes=[{"name": "root", "hostPath": {"path": "/"}}]))
    del done.template["spec"]["initContainers"][0]["securityContext"]["capabilities"]

    assert violations(done.template["spec"]) == ["turnout-router: capabilities", "root"]


def test_nothing_can_be_written_but_the_store(injecting: Any, pod: Any) -> None:
    router = injecting(storeDir="/var/lib/turnout")(pod()).template["spec"]["initContainers"][0]

    assert router["securityContext"]["readOnlyRootFilesystem"] is True
    assert [m["name"] for m in router["volumeMounts"] if not m.get("readOnly")] == ["turnout-store"]
