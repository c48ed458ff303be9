"""The custom resources of Turnout: one file a kind, `common` and `rules` for what they share, `settings` for the cluster's."""

from turnout_api.resources.common import (
    API_VERSION,
    CATEGORY,
    GROUP,
    VERSION,
    Column,
    Condition,
    NodeModelRef,
    ObjectMeta,
    Resource,
    Status,
)
from turnout_api.resources.frontendmodel import Action, Defaults, FrontendModel, FrontendModelSpec, FrontendRule, Target
from turnout_api.resources.guardian import Guardian, GuardianScope, GuardianSpec
from turnout_api.resources.modelpool import Member, ModelPool, ModelPoolSpec
from turnout_api.resources.routernode import Asset, Backend, Model, Price, RouterNode, RouterNodeSpec, Runtime
from turnout_api.resources.routetest import Expectation, RouteTest, RouteTestRequest, RouteTestSpec
from turnout_api.resources.routinglink import RoutingLink, RoutingLinkSpec
from turnout_api.resources.rules import Part, Rule
from turnout_api.resources.settings import Settings
from turnout_api.resources.splitrecipe import Component, SplitRecipe, SplitRecipeSpec
from turnout_api.resources.when import Day, HeaderMatch, TimeWindow, When

KINDS: dict[str, type[Resource]] = {
    "RouterNode": RouterNode,
    "RoutingLink": RoutingLink,
    "Guardian": Guardian,
    "FrontendModel": FrontendModel,
    "ModelPool": ModelPool,
    "SplitRecipe": SplitRecipe,
    "RouteTest": RouteTest,
}
"""Every kind by its name."""

__all__ = [
    "API_VERSION",
    "CATEGORY",
    "GROUP",
    "KINDS",
    "VERSION",
    "Action",
    "Asset",
    "Backend",
    "Column",
    "Component",
    "Condition",
    "Day",
    "Defaults",
    "Expectation",
    "FrontendModel",
    "FrontendModelSpec",
    "FrontendRule",
    "Guardian",
    "GuardianScope",
    "GuardianSpec",
    "HeaderMatch",
    "Member",
    "Model",
    "ModelPool",
    "ModelPoolSpec",
    "NodeModelRef",
    "ObjectMeta",
    "Part",
    "Price",
    "Resource",
    "RouteTest",
    "RouteTestRequest",
    "RouteTestSpec",
    "RouterNode",
    "RouterNodeSpec",
    "RoutingLink",
    "RoutingLinkSpec",
    "Rule",
    "Runtime",
    "Settings",
    "SplitRecipe",
    "SplitRecipeSpec",
    "Status",
    "Target",
    "TimeWindow",
    "When",
]
