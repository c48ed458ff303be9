"""Where people sign in, the master's pod has the token of its service account, and that account the role to write."""

from typing import Any

from turnout_operator.children import RouterPods

ADMINS = {"secretRef": {"name": "people"}}
WRITES = RouterPods(admin_role="turnout-admin")


def of(planned: Any, kind: str) -> dict[str, Any] | None:
    return next((dict(child) for child in planned.apply if child["kind"] == kind), None)


def test_it_gets_the_role_and_the_token(in_cluster: Any) -> None:
    in_cluster.put_node("master", admins=ADMINS)
    planned = in_cluster.round(how=WRITES)

    binding = of(planned, "RoleBinding")
    assert binding is not None
    assert binding["roleRef"]["name"] == "turnout-admin"
    assert [subject["name"] for subject in binding["subjects"]] == ["turnout-router-master"]
    deployment = of(planned, "Deployment")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is True
    assert in_cluster.round(how=WRITES).apply == ()


def test_where_nobody_signs_in_it_gets_neither(in_cluster: Any) -> None:
    planned = in_cluster.round(how=WRITES)

    assert of(planned, "RoleBinding") is None
    deployment = of(planned, "Deployment")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_an_operator_without_a_role_to_give_gives_none(in_cluster: Any) -> None:
    in_cluster.put_node("master", admins=ADMINS)

    assert of(in_cluster.round(), "RoleBinding") is None


def test_another_role_takes_the_place_of_the_first(in_cluster: Any) -> None:
    in_cluster.put_node("master", admins=ADMINS)
    in_cluster.round(how=WRITES)

    planned = in_cluster.round(how=RouterPods(admin_role="other-admin"))

    assert [str(key) for key in planned.delete] == ["RoleBinding turnout-router-master"]
    binding = of(planned, "RoleBinding")
    assert binding is not None
    assert binding["roleRef"]["name"] == "other-admin"


def test_a_role_of_the_whole_cluster_is_given_in_the_masters_namespace_only(in_cluster: Any) -> None:
    in_cluster.put_node("master", admins=ADMINS)

    binding = of(in_cluster.round(how=RouterPods(admin_role="ClusterRole/turnout-admin")), "RoleBinding")

    assert binding is not None
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("ClusterRole", "turnout-admin")
