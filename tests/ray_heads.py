"""Ray in tests: the variables it is started with, and one of a single node that runs already when a
test starts, as on a cluster's head."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path


def environment():
    """One thread, and nothing of the caller's Ray."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    return variables | {
        "OMP_NUM_THREADS": "1",
        # By itself Ray gives way to everything else on the machine (15), and tests take for ever.
        "RAY_worker_niceness": "0",
        # On a busy machine its parts take longer to start than it waits for them.
        "RAY_agent_register_timeout_ms": "900000",
        "RAY_worker_register_timeout_seconds": "900",
        # Ray 2.60 asks for a token where whoever runs the tests has one.
        "RAY_AUTH_MODE": "disabled",
    }


@contextlib.contextmanager
def ray_head(log, cpus, environment, cwd=None):
    """Its address; it writes to `log`. Workers take the folder and the variables of the `ray start`
    of their node."""
    port, client_port, agent_port = _free_ports(3)
    command = [
        str(Path(sys.executable).parent / "ray"), "start", "--head", "--block",
        f"--port={port}", f"--ray-client-server-port={client_port}",
        f"--dashboard-agent-listen-port={agent_port}", "--min-worker-port=0", "--max-worker-port=0",
        "--include-dashboard=false", "--disable-usage-stats", f"--num-cpus={cpus}",
        "--object-store-memory=100000000",
    ]  # fmt: skip
    # Sockets in Ray's folder have names of about 70 characters, and 107 are allowed.
    with tempfile.TemporaryDirectory(prefix="head", dir="/tmp") as folder, log.open("w") as out:
        head = subprocess.Popen(
            [*command, f"--temp-dir={folder}"],
            cwd=cwd,
            env=dict(environment),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            while "This command will now block" not in log.read_text():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    head.wait(0.2)
                if head.poll() is not None:
                    raise RuntimeError(log.read_text())
            yield f"127.0.0.1:{port}"
        finally:
            # It ends the processes that it started, and only those.
            head.terminate()
            head.wait(60)


def _free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]
