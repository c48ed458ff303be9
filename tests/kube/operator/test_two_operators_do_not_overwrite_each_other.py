"""The remembered state is replaced only by who read it: of two operators the later one is refused."""

import pytest
from kubernetes.aio.config import kube_config

from turnout_operator.api import Api, ApiError
from turnout_operator.rights import Rights
from turnout_operator.state import Issued, Kept, document

FIRST = Kept(routers={"gpu-a": Issued(1, "sha256:aa")})
SECOND = Kept(routers={"gpu-a": Issued(2, "sha256:bb")})


@pytest.fixture
async def api(cluster, monkeypatch):
    # the client reads the variable KUBECONFIG when it is imported
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(cluster.kubeconfig))
    async with await Api.connect(Rights()) as found:
        yield found


async def test_nothing_is_remembered_of_a_new_namespace(api, namespace):
    kept, version = await api.read_state(namespace)

    assert (document(kept), version) == (document(Kept()), "")


async def test_what_was_written_is_read(api, namespace):
    await api.write_state(namespace, FIRST, "")
    _, version = await api.read_state(namespace)
    await api.write_state(namespace, SECOND, version)

    kept, _ = await api.read_state(namespace)
    assert document(kept) == document(SECOND)


@pytest.mark.parametrize("there_before", [False, True])
async def test_the_one_that_read_before_the_other_wrote_is_refused(api, namespace, there_before):
    if there_before:
        await api.write_state(namespace, Kept(), "")
    _, mine = await api.read_state(namespace)
    await api.write_state(namespace, FIRST, mine)

    with pytest.raises(ApiError) as refused:
        await api.write_state(namespace, SECOND, mine)

    assert refused.value.status == 409
    kept, _ = await api.read_state(namespace)
    assert document(kept) == document(FIRST)
