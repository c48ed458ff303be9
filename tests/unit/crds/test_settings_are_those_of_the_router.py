"""A setting of the resource is a field of the router's configuration, with the same name and default."""

import pytest

from turnout_api.config import ClusterConfig
from turnout_api.resources import Settings

NOT_SETTINGS = {
    "ca_file",
    "role",
    "node_id",
    "node",
    "token_file",
    "token_previous_file",
    "master_url",
    "public_url",
    "slave_urls",
    "store_dir",
}
"""What a router knows about itself: not shared by the master."""


def test_every_setting_is_a_field_of_the_routers_configuration_and_the_reverse():
    assert set(Settings.model_fields) == set(ClusterConfig.model_fields) - NOT_SETTINGS


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_the_defaults_agree(name):
    assert getattr(Settings(), name) == getattr(ClusterConfig(node_id="gpu-a"), name)


def test_a_setting_given_by_hand_can_be_told_from_a_default():
    given = Settings.model_validate({"schedulingMinSamples": 20})

    assert given == Settings()
    assert given.model_fields_set == {"scheduling_min_samples"}
