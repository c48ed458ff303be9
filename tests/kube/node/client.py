"""What a client in the cluster runs, by `kubectl exec client -- python -c`: it asks the Service of the master, and says in JSON lines
what it got.

    client.py ask '[{"model": …, "max_tokens": …}, …]'         all at once; one line each
    client.py decisions QUERY                                  rows of the decision log, as one line
    client.py load MODEL STREAM_TOKENS                         5 requests a second and one long stream, until standard input ends

`load` writes `{"streaming": …}` once the stream has begun, then one line for everything that failed, and at its end the counts.
"""

import asyncio
import json
import os
import sys
import time
from typing import Any

import aiohttp

PATH = "/v1/chat/completions"
EVERY_S = 0.2
PROMPT = [{"role": "user", "content": "What is a turnout?"}]


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


async def ask(session: aiohttp.ClientSession, body: dict[str, Any]) -> dict[str, Any]:
    """One request; `error` says how it failed."""
    began = time.monotonic()
    try:
        async with session.post(PATH, json={"messages": PROMPT} | body) as response:
            text = await response.text()
            turnout = {k.lower().removeprefix("x-turnout-"): v for k, v in response.headers.items()}
    except aiohttp.ClientError as error:
        return {"status": 0, "error": repr(error)}
    answer = {"status": response.status, "seconds": time.monotonic() - began, "headers": turnout, "text": text}
    return answer if response.status == 200 else answer | {"error": text}


async def stream(session: aiohttp.ClientSession, model: str, tokens: int) -> str:
    """One stream to its end; empty = it was whole."""
    body = {"messages": PROMPT, "model": model, "max_tokens": tokens, "stream": True}
    chunks, last = 0, b""
    try:
        async with session.post(PATH, json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    chunks, last = chunks + 1, line
                    if chunks == 1:
                        say(streaming=response.status)
    except aiohttp.ClientError as error:
        return repr(error)
    return "" if last.strip() == b"data: [DONE]" and chunks >= tokens else f"{chunks} of {tokens} chunks, then {last!r}"


async def load(session: aiohttp.ClientSession, model: str, tokens: int) -> None:
    """Until standard input ends; then what is under way is finished."""
    stopped = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    streaming = asyncio.create_task(stream(session, model, tokens))
    asked = []
    while not stopped.done():
        asked.append(asyncio.create_task(ask(session, {"model": model, "max_tokens": 4})))
        await asyncio.wait([stopped], timeout=EVERY_S)
    answers = await asyncio.gather(*asked)
    errors = [one["error"] for one in answers if "error" in one]
    say(asked=len(answers), errors=errors, stream=await streaming)


async def main() -> None:
    timeout = aiohttp.ClientTimeout(total=300)
    headers = {"authorization": f"Bearer {os.environ['KEY']}"}
    async with aiohttp.ClientSession("http://master:8900", headers=headers, timeout=timeout) as session:
        match sys.argv[1:]:
            case ["ask", bodies]:
                for answer in await asyncio.gather(*(ask(session, body) for body in json.loads(bodies))):
                    say(**answer)
            case ["decisions", query]:
                token = {"authorization": f"Bearer {os.environ['TOKEN']}"}
                async with session.get(f"/router/v1/node/decisions?all=1&{query}", headers=token) as response:
                    say(**await response.json())
            case ["load", model, tokens]:
                await load(session, model, int(tokens))


asyncio.run(main())
