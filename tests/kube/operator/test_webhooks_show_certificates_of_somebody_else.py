"""As with cert-manager: somebody else writes the certificates and the trust, and renews both while the operator runs."""

import base64
import json
from datetime import UTC, datetime

import pytest

from turnout_operator.admission.certificates import renewed


@pytest.fixture
def manager(objects, tmp_path, webhook):
    """Does what cert-manager and the kubelet do: trust first, then what is mounted."""

    class Manager:
        folder = tmp_path / "certificates"

        def renew(self):
            bundle = renewed(None, [f"turnout.{objects.namespace}.svc"], datetime.now(UTC))
            trusted = base64.b64encode(bundle.authorities.encode()).decode()
            for kind in webhook.KINDS:
                count = len(objects.get(kind, webhook.configuration)["webhooks"])
                patch = [
                    {"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": trusted}
                    for i in range(count)
                ]
                objects.cluster.kubectl("patch", kind, webhook.configuration, "--type=json", "-p", json.dumps(patch))
            self.folder.mkdir(exist_ok=True)
            (self.folder / "tls.key").write_text(bundle.key)
            (self.folder / "tls.crt").write_text(bundle.certificate)

    return Manager()


def test_and_go_on_when_they_are_renewed(objects, webhook, manager, manifests, until):
    manager.renew()
    operator = webhook.start(f"--webhook-certificates={manager.folder}")
    webhook.is_asked()
    objects.apply(*manifests.all())

    manager.renew()

    until(lambda: operator.log().count("shows the certificate") == 2, "the new one is not shown")
    webhook.is_asked()
    assert objects.get("secret", "turnout-webhook") is None, "the operator keeps none of its own"
