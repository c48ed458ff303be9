"""Any server that speaks OpenAI's API and tells nothing of its insides.

Ready = `GET /v1/models` answers 2xx, else `GET /health` does (servers for one purpose often have only that). There is
no call to load or unload: it has what it lists.
"""

from collections.abc import Collection, Mapping

import orjson

from turnout_router.backends.driver import Answer, LoadRejected, Probe, ask
from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamClient, UpstreamError

MODELS = "/v1/models"
HEALTH = "/health"


class OpenAIDialect:
    """Speaks to OpenAI-compatible servers."""

    def __init__(self, client: UpstreamClient) -> None:
        self._client = client

    async def probe(self, origin: Origin, names: Collection[str], timeout_s: float) -> Mapping[str, Probe]:
        """Ready or not; the same for each of its models."""
        probe = await look(self._client, origin, (MODELS, HEALTH), timeout_s)
        return dict.fromkeys(names, probe)

    async def models(self, origin: Origin, timeout_s: float) -> list[str]:
        """What it lists."""
        return model_ids(await ask(self._client, origin, "GET", MODELS, timeout_s=timeout_s))

    async def load(self, origin: Origin, name: str, timeout_s: float) -> bool:
        """Nothing to do: it has its models."""
        del origin, name, timeout_s
        return False

    async def unload(self, origin: Origin, name: str, timeout_s: float) -> None:
        """Nothing that could be done."""


async def look(client: UpstreamClient, origin: Origin, targets: Collection[str], timeout_s: float) -> Probe:
    """Ready when one of the targets answers 2xx; they are tried in order."""
    said: list[str] = []
    try:
        for target in targets:
            answer = await ask(client, origin, "GET", target, timeout_s=timeout_s)
            if answer.good:
                return Probe()
            said.append(f"{target} answers {answer.status}")
    except TimeoutError:
        return Probe(down=f"no answer within {timeout_s:g} s", silent=True)
    except (UpstreamError, BodyTooLarge) as error:
        return Probe(down=str(error))
    return Probe(down=", ".join(said))


def model_ids(answer: Answer) -> list[str]:
    """The IDs in an answer to `GET /v1/models`. Raises LoadRejected when it is none."""
    try:
        return [str(entry["id"]) for entry in orjson.loads(answer.body)["data"]]
    except (ValueError, KeyError, TypeError) as error:
        raise LoadRejected(f"the list of models cannot be read (status {answer.status})") from error
