"""`kubectl apply -f examples/kubernetes` after `helm install`: a client in the cluster is served by pods that got their sidecar."""


def test_every_object_is_accepted_and_every_router_runs_its_configuration(shop):
    for node in ("master", "gpu-a", "gpu-b", "gpu-c"):
        shop.programmed(node)

    names = {one["metadata"]["name"] for one in shop.get("turnout")["items"]}
    assert names >= {"master", "gpu-a", "gpu-b", "gpu-c", "a-to-b", "assistant", "large", "giants-are-denied"}
    shop.until(lambda: not bad(shop), lambda: f"not good: {bad(shop)}")


def bad(shop) -> set[tuple[str, str, str]]:
    """Conditions that are not as they should be; those of what routers say come seconds later."""
    return {
        (one["metadata"]["name"], condition["type"], condition["reason"])
        for one in shop.get("turnout")["items"]
        for condition in one["status"]["conditions"]
        if condition["type"] in {"Accepted", "Programmed", "Ready"} and condition["status"] != "True"
    }


def test_pods_get_the_sidecar_and_are_admitted_under_the_restricted_standard(shop):
    found = shop.get("pods", "-l", "app in (gpu-a, gpu-b, gpu-c)")["items"]

    assert len(found) == 3
    for pod in found:
        [sidecar] = pod["spec"]["initContainers"]
        assert (sidecar["name"], sidecar["restartPolicy"]) == ("turnout-router", "Always")
        assert pod["status"]["initContainerStatuses"][0]["ready"]


def test_rules_choose_between_a_stand_in_and_a_real_model_on_the_cpu(shop):
    [long, short, giant] = shop.ask(*({"model": "assistant", "max_tokens": count} for count in (40, 12, 4000)))

    assert (long["status"], long["headers"]["rule"]) == (200, "assistant/defaults")
    assert (short["status"], short["headers"]["rule"]) == (200, "assistant/short")
    assert (short["headers"]["node"], short["headers"]["model"]) == ("gpu-c", "smollm2")
    assert (giant["status"], giant["headers"]["rule"]) == (403, "assistant/no-giants")
    assert "ask for less than 4000 tokens" in giant["text"]


def test_llama_cpp_answers_with_words_of_its_own(shop):
    [answer] = shop.ask({"model": "smollm2", "max_tokens": 16, "temperature": 0, "messages": CAPITAL})

    assert "Paris" in answer["text"]


CAPITAL = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
