"""The second part of `make demo` ends well, lends, and tells why."""

import asyncio
import re
import sys
from pathlib import Path

DEMO = Path(__file__).parents[3] / "examples" / "demo_lending.py"


async def test_the_demo_shows_who_helped_and_why() -> None:
    pipe = asyncio.subprocess.PIPE
    demo = await asyncio.create_subprocess_exec(
        sys.executable, str(DEMO), stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    printed = (await demo.communicate())[0].decode()
    assert demo.returncode == 0, printed
    requests = re.findall(r"^\d+ +(gpu-[ab]) .*(gpu-[ab])", printed, re.MULTILINE)
    assert len(requests) == 10, printed
    assert {alone for alone, _ in requests} == {"gpu-a"}, printed
    assert {linked for _, linked in requests} == {"gpu-a", "gpu-b"}, printed
    assert "lending saved" in printed
    assert "gpu-b may help: gpu-a alone needed" in printed
