"""The referee as tools of the Model Context Protocol, on standard input and output.

pip install 'mcp>=2'
python examples/mcp_server.py
"""

import asyncio
import io
import json
from typing import Any

from mcp.server import MCPServer

from azr_population.referee import Program, Referee, RefereeSettings
from azr_population.referee.pipe import judge_lines


def serve(settings: RefereeSettings) -> None:
    """Serves the tools `run_program` and `judge` until standard input closes."""
    tools = MCPServer("azr-population")
    referee = Referee(settings)

    @tools.tool()
    async def run_program(program: str, inputs: list[str]) -> dict[str, Any]:
        """Run a Python program in a sandbox, once on each input.

        Args:
            program: source that defines a function f.
            inputs: argument lists as source text, such as "[1, 2], 'a'".

        Returns valid, reason, and outputs as Python literals; detail where there is more to say.
        """
        asked = Program(program, tuple(inputs))
        [execution] = await asyncio.to_thread(referee.check, [asked])
        return {
            "valid": execution.valid,
            "reason": str(execution.reason),
            "outputs": list(execution.outputs),
            "detail": execution.detail,
        }

    @tools.tool()
    async def judge(task: dict[str, Any]) -> dict[str, Any]:
        """Judge answers to a reasoning task about a Python program, run in a sandbox.

        Args:
            task: {"type": "code_o", "program": "def f(x): ...", "input": "3", "answers": ["4"]};
                code_i: the answers are inputs. {"type": "code_f", "inputs": ["1", "2"],
                "outputs": ["2", "3"], "answers": ["def f(x): return x + 1"]}.

        Returns valid, and for each answer solved and the reason; or valid false and the reason.
        """
        source, verdict = io.BytesIO(json.dumps(task).encode()), io.StringIO()
        await asyncio.to_thread(judge_lines, referee, source, verdict)
        return dict(json.loads(verdict.getvalue()))

    with referee:
        tools.run()


if __name__ == "__main__":
    serve(RefereeSettings(workers=1))
