"""An engine for tests of generation: it does as another, but for grammars with a word that it refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2

REFUSAL = "The provided JSON schema contains features not supported by xgrammar."


@contextmanager
def refusing(behind: str, word: str) -> Iterator[str]:
    """The URL of an engine in front of another: a request whose grammar holds `word` is 400."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._tell(httpx2.get(behind + self.path, timeout=30))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            grammar = (json.loads(content).get("structured_outputs") or {}).get("json", "")
            if word in grammar:
                error = {"message": REFUSAL, "type": "BadRequestError", "param": None, "code": 400}
                self._send(400, json.dumps({"error": error}).encode())
            else:
                self._tell(httpx2.post(behind + self.path, content=content, timeout=30))

        def _tell(self, response: httpx2.Response) -> None:
            self._send(response.status_code, response.content)

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
