"""The master's configuration is whole, a slave's holds what the slave needs."""

import pytest

from turnout_api.config import RouterConfig


@pytest.fixture
def cluster(make):
    return [
        make.master(
            settings={"schedulingBackendDepth": 3, "healthInterval": "1s"}, clients={"secretRef": {"name": "c"}}
        ),
        make.node("gpu-a", {"id": "ff", "publicID": "cc11", "contextWindow": 8192}),
        make.node("gpu-b", {"id": "cc11", "contextWindow": 4096}, {"id": "vl", "capabilities": ["Text", "Vision"]}),
        make.node("gpu-c", {"id": "other"}),
        make.link("a-to-b", "gpu-a/ff", "gpu-b/cc11"),
        make.guardian("eyes", {"node": "gpu-a"}, "gpu-b", "vl"),
        make.frontend("assistant", {"when": {"hasImages": True}, "targets": [{"pool": "all"}]}),
        make.pool("all", "cc11"),
        make.recipe("studio", "studio", {"capability": "Text", "node": "gpu-a", "model": "ff"}),
    ]


def test_every_accepted_node_has_a_configuration_of_the_given_generation(make, cluster):
    resolution = make.resolved(*cluster)

    assert [v.message for v in resolution.verdicts if not v.accepted] == []
    assert sorted(resolution.configs) == ["gpu-a", "gpu-b", "gpu-c", "master"]
    assert {config.generation for config in resolution.configs.values()} == {7}
    assert resolution.master == "master"


def test_the_master_lists_its_slaves_and_holds_everything(make, cluster):
    master = make.resolved(*cluster).configs["master"]

    assert master.cluster.role == "Master"
    assert (master.cluster.master_url, master.cluster.public_url) == ("", "http://master:8900")
    assert master.cluster.slave_urls == ["http://gpu-a:8900", "http://gpu-b:8900", "http://gpu-c:8900"]
    assert master.access.clients_file == "/state/clients.yaml"
    assert [link.name for link in master.links] == ["a-to-b"]
    assert [guardian.name for guardian in master.guardians] == ["eyes"]
    assert [frontend.model_name for frontend in master.frontends] == ["assistant"]
    assert master.frontends[0].rules[0].when == {"hasImages": True}
    assert [pool.name for pool in master.pools] == ["all"]
    assert [recipe.public_id for recipe in master.recipes] == ["studio"]
    assert sorted(master.names) == ["cc11", "other", "vl"]


def test_a_slave_gets_its_own_models_and_what_names_it(make, cluster):
    configs = make.resolved(*cluster).configs

    slave = configs["gpu-b"]
    assert slave.cluster.master_url == "http://master:8900"
    assert slave.cluster.public_url == "http://gpu-b:8900"
    assert slave.cluster.node_id == "gpu-b"
    assert [model.id for model in slave.models.local] == ["cc11", "vl"]
    assert [link.name for link in slave.links] == ["a-to-b"]
    assert [guardian.name for guardian in slave.guardians] == ["eyes"]
    assert (slave.frontends, slave.pools, slave.recipes, slave.names) == ([], [], [], {})
    assert slave.access.clients_file == ""
    assert configs["gpu-c"].links == []
    assert configs["gpu-c"].guardians == []


def test_the_masters_settings_reach_every_slave(make, cluster):
    configs = make.resolved(*cluster).configs

    assert {config.cluster.scheduling_backend_depth for config in configs.values()} == {3}
    assert {config.cluster.health_interval for config in configs.values()} == {1.0}


def test_settings_with_one_bad_value_are_refused_whole_and_the_last_good_ones_go_on(make, cluster):
    before = make.resolved(*cluster)
    edited = make.master(
        settings={"schedulingBackendDepth": 5, "offloadProbeIdle": "1s", "offloadFasterHelperSlots": 4},
        clients={"secretRef": {"name": "c"}},
    )

    after = make.resolved(edited, *cluster[1:], before=before)

    assert after.verdicts[0].reason == "Invalid"
    assert after.configs == before.configs


def test_what_a_strategy_decides_about_is_left_to_it_unless_it_is_given(make):
    settings = {"offloadStrategy": "Adaptive", "offloadRestoreDelay": "3s"}

    config = make.resolved(make.master(settings=settings)).configs["master"]

    assert config.cluster.scheduling_backend_depth is None
    assert config.cluster.backend_depth == 1
    assert config.cluster.strategy_set.offload_restore_delay == 3.0
    assert RouterConfig.model_validate_json(config.model_dump_json()) == config


def test_a_configuration_survives_its_way_through_a_file(make, cluster):
    for config in make.resolved(*cluster).configs.values():
        assert RouterConfig.model_validate_json(config.model_dump_json()) == config


def test_a_standalone_serves_its_own_models(make):
    config = make.resolved(make.node("solo", {"id": "m"}, role="Standalone")).configs["solo"]

    assert config.cluster.role == "Standalone"
    assert config.cluster.slave_urls == []
    assert [model.id for model in config.models.local] == ["m"]
    assert list(config.names) == ["m"]


def test_without_a_master_no_router_is_given_anything(make):
    assert make.resolved(make.frontend("assistant")).configs == {}


def test_the_placement_wins_over_the_store_of_the_object(make):
    config = make.resolved(make.master(storeDir="/var/lib/turnout")).configs["master"]

    assert config.cluster.store_dir == "/state/master"


BOTH = {"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081", "command": ["serve", "${PORT}"]}
PROCESS = {"name": "llama", "family": "Process", "url": "http://127.0.0.1:8081", "command": ["serve"]}


@pytest.mark.parametrize(
    ("backend", "where", "started"),
    [(BOTH, "LOCAL", True), (BOTH, "CLUSTER", False), (PROCESS, "LOCAL", True), (PROCESS, "CLUSTER", True)],
)
def test_local_mode_starts_what_it_can_and_a_cluster_family_process_only(make, backend, where, started):
    node = make.node("solo", {"id": "m"}, role="Standalone", backends=[backend])
    config = make.resolved(node, placement=make.Placed(where=make.Where[where])).configs["solo"]

    [resolved] = config.backend.backends
    assert bool(resolved.command) is started
    assert bool(resolved.url) is not started


def test_conditions_are_written_as_the_manifest_has_them(make):
    when = {
        "timeWindow": {"zone": "Europe/Berlin", "days": ["Mon"], "from": "22:00", "to": "06:00"},
        "headers": {"x-team": {"exact": "red"}},
        "percent": 0,
        "stream": False,
    }
    frontend = make.frontend("f", {"when": when, "targets": [{"model": "m"}, {"pool": "p"}], "tag": "t"})

    [rule] = make.resolved(make.master(), frontend).configs["master"].frontends[0].rules

    assert rule.when == when
    assert [(target.model, target.pool) for target in rule.targets] == [("m", ""), ("", "p")]
    assert (rule.action, rule.tag) == ("Route", "t")


def test_what_a_model_leaves_out_is_computed(make):
    models = [
        {"id": "plain", "contextWindow": 8192, "parallel": 1},
        {"id": "vllm", "vllm": {"settings": {"maxModelLength": 8192, "maxNumberSequences": 1}}},
        {"id": "unset"},
        {"id": "given", "configHash": "sha256:mine"},
    ]

    plain, vllm, unset, given = make.resolved(make.master(*models)).configs["master"].models.local

    assert (vllm.context_window, vllm.parallel) == (8192, 1)
    assert vllm.config_hash == plain.config_hash
    assert unset.config_hash != plain.config_hash
    assert given.config_hash == "sha256:mine"
