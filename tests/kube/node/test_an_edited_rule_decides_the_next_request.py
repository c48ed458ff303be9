"""`kubectl patch`: once the status says that routers run the rule, the next request is decided by it."""


def test_an_edited_rule_decides(shop):
    rules = shop.get("frontendmodel", "assistant")["spec"]["rules"]
    [before] = shop.ask({"model": "assistant", "max_tokens": 12})

    edited = [{**rule, "targets": [{"model": "cc11"}]} if rule["name"] == "short" else rule for rule in rules]
    shop.patch("frontendmodel", "assistant", {"rules": edited})
    [after] = shop.ask({"model": "assistant", "max_tokens": 12})
    shop.patch("frontendmodel", "assistant", {"rules": rules})

    assert (before["headers"]["rule"], before["headers"]["model"]) == ("assistant/short", "smollm2")
    assert (after["headers"]["rule"], after["headers"]["model"]) == ("assistant/short", "cc11")
