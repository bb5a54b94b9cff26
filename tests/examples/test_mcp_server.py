"""The referee's tools, called by the client of `mcp` over standard input and output."""

import asyncio
import os
import sys
from pathlib import Path

import needs

needs.module("mcp.server.mcpserver", "'mcp>=2'")
SERVER = Path(__file__).parents[2] / "examples" / "mcp_server.py"
PROGRAM = "def f(x):\n    return x + 1"


async def session():
    """The names of the tools, and what two of them answer."""
    from mcp import Client, StdioServerParameters, stdio_client

    server = stdio_client(
        StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=dict(os.environ))
    )
    task = {"type": "code_o", "program": PROGRAM, "input": "3", "answers": ["4", "5"]}
    async with Client(server) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        ran = await client.call_tool("run_program", {"program": PROGRAM, "inputs": ["1", "'a'"]})
        judged = await client.call_tool("judge", {"task": task})
        malformed = await client.call_tool("judge", {"task": {"type": "code_o"}})
    return tools, *(answer.structured_content for answer in (ran, judged, malformed))


def test_the_tools_answer_as_the_referee():
    tools, ran, judged, malformed = asyncio.run(session())
    assert tools == ["run_program", "judge"]
    assert (ran["valid"], ran["reason"], ran["outputs"]) == (False, "error", [])
    assert (judged["output"], judged["solved"]) == ("4", [True, False])
    assert (malformed["valid"], malformed["reason"]) == (False, "malformed")
