"""Stand-ins that several test files share."""

import sys
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, ids, skip_special_tokens=True, clean_up_tokenization_spaces=False):
        """The text of the bytes; with special tokens it ends in `|`."""
        return bytes(ids).decode() + ("" if skip_special_tokens else "|")


def weights_digest(learner):
    """A number that changes with any weight of any member of a `TorchLearner`."""
    parameters = [p for slot in range(learner.bank.slots) for p in learner.bank.parameters_of(slot)]
    return zlib.crc32(b"".join(p.detach().cpu().numpy().tobytes() for p in parameters))


@contextmanager
def http_server(respond, content_type="application/json"):
    """Answers each POST by `respond(path, headers, body)`: status and body. Yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            arguments = self.rfile.read(int(self.headers["Content-Length"]))
            status, body = respond(self.path, self.headers, arguments)
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request, address):
            # A client that hangs up, perhaps in a later test, whose stderr this would reach.
            if not isinstance(sys.exc_info()[1], ConnectionError):
                super().handle_error(request, address)

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
