#!/usr/bin/env python3
"""endless.py RIVAL ARGUMENT...: runs this command against a server whose documents are good, but whose run has nodes
without end: each list below the first one says that there are more than anybody could read, and each node has children.
Ends as the command does."""
import http.server, json, subprocess, sys, threading, urllib.parse

RUN = {"runId": "r1", "workflow": "w", "version": "v", "status": "failed", "createdAt": 1, "input": {}, "results": {},
       "steps": []}
NODE = {"alias": "a", "status": "failed", "children": 2**62}


def document(url):
    parent = urllib.parse.parse_qs(url.query).get("parent", [""])[0]
    if url.path.endswith("/nodes"):
        nodes = [dict(NODE, path=f"{parent}:{i}" if parent else f"a{i}", kind="iteration" if parent else "forEach")
                 for i in range(3)]
        return {"nodes": nodes, "total": 2**62 if parent else 3, "offset": 0}
    if url.path.endswith("/history"):
        return {"events": [], "next": None, "more": False}
    return {"status": "ok", "workflows": 1} if url.path.startswith(("/healthz", "/readyz")) else RUN


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        body = json.dumps(document(urllib.parse.urlparse(self.path))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(sys.argv[1:] + ["--server", f"http://127.0.0.1:{server.server_port}"]).returncode)
