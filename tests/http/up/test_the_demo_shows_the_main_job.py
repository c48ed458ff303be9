"""`make demo` ends well and shows which node served what."""

import asyncio
import sys
from pathlib import Path

DEMO = Path(__file__).parents[3] / "examples" / "demo.py"


async def test_the_demo_serves_every_request_from_both_nodes() -> None:
    pipe = asyncio.subprocess.PIPE
    demo = await asyncio.create_subprocess_exec(
        sys.executable, str(DEMO), "--sim", stdout=pipe, stderr=asyncio.subprocess.STDOUT
    )
    printed = (await demo.communicate())[0].decode()
    assert demo.returncode == 0, printed
    assert "sim-backend, a stand-in" in printed
    assert "gpu-a served 6 requests as smollm2:" in printed
    assert "gpu-b served 6 requests as smollm2-2:" in printed
