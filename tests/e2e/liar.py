#!/usr/bin/env python3
"""liar.py SEED ROUNDS RIVAL...: a server that answers the commands of `rival` with anything but what it should.

Documents as a real server sends them are bent: members of other types, missing, twice, too many, too deep, too
long; numbers beyond all; text with control characters; events that are none; bytes that are no HTTP. Each round
runs one command against it, with little memory and time. Prints a line for each that ended by a signal, took too
long, or wrote a control character; then how many rounds were good."""
import http.server, json, os, random, resource, subprocess, sys, threading

seed, rounds, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
chance = random.Random(seed)
lock = threading.Lock()
RUN = {"runId": "r1", "workflow": "w", "version": "v", "status": "running", "createdAt": 1, "startedAt": 2,
       "completedAt": None, "duration": None, "input": {"a": 1}, "results": {"a": {"result": 1}}, "steps": []}
NODE = {"path": "a", "alias": "a", "kind": "forEach", "status": "running", "startedAt": 1, "duration": 5, "queueMs": 0,
        "attempt": 1, "retryCount": 0, "crashes": 0, "children": 2, "description": "d",
        "iterations": {"running": 1, "completed": 2, "failed": 0, "cancelled": 0, "total": 3}}
WAIT = {"reason": "signal", "message": "waits", "name": "go", "since": 1, "dueAt": 2, "count": 2,
        "nodes": [{"path": "a"}], "cause": {"message": "x"}}
LINE = {"id": 1, "level": "info", "message": "hello", "timestamp": 1, "metadata": {}, "runId": "r1",
        "stepName": "a", "path": "a", "attempt": 1}
FLOW = {"name": "w", "description": "d", "version": "v", "source": "s", "stepCount": 1, "inputSchema": {}}
EVENT = {"kind": "step.started", "runId": "r1", "workflow": "w", "path": "a", "at": 5, "seq": 1}


def document(path):
    if path.startswith(("/healthz", "/readyz")):
        return {"status": "ok", "workflows": 1}
    if "/nodes" in path:
        return {"nodes": [dict(NODE, path=f"a{i}", children=i % 2) for i in range(3)], "total": 3, "offset": 0}
    if "/why" in path:
        return {"runId": "r1", "status": "running", "waits": [WAIT, WAIT]}
    if "/logs" in path:
        return {"logs": [LINE, LINE], "next": 0}
    if path.startswith("/api/v1/workflows"):
        return {"workflows": [FLOW]} if not path.endswith("/runs") else {"runId": "r1", "status": "running"}
    if path.startswith("/api/v1/runs?") or path == "/api/v1/runs":
        return {"runs": [RUN, RUN], "nextCursor": None}
    return dict(RUN, status=chance.choice(["running", "completed", "failed", "suspended"]))


def strange():
    return chance.choice([
        None, True, -1, 0, 1e308, 10 ** 30, -10 ** 30, 2 ** 63, 0.5, "", "x" * 100000, "\x1b[2J\x07\x00\u202e", "..",
        "\ud7ff", [], {}, [[]] * 50, {"": {"": {}}}, ["x"] * 3000, {str(i): i for i in range(500)}, "r1", "running",
        "5e99999", {"message": "\x1b]0;x\x07"}, "é" * 5000])


def bend(value, depth=0):
    if chance.random() < 0.08:
        return strange()
    if isinstance(value, dict):
        bent = {k: bend(v, depth + 1) for k, v in value.items() if chance.random() > 0.04}
        if chance.random() < 0.05:
            bent[chance.choice(list(value) or ["x"]) + "\x1b"] = strange()
        return bent
    if isinstance(value, list):
        return [bend(v, depth + 1) for v in value] * chance.choice([1, 1, 1, 1, 2, 40])
    return value


def text_of(value):
    with lock:
        how = chance.random()
        text = json.dumps(bend(value) if how < 0.8 else value, ensure_ascii=chance.random() < 0.5)
        if how > 0.97:
            return "[" * 100000 + "]" * 100000
        if how > 0.95:
            return "[" + "1," * 500000 + "1]"
        if how > 0.93:
            return text[: chance.randrange(len(text))]
        if how > 0.91:
            return text.replace('"', chance.choice(["'", "\x00", '\\"', ""]), 3)
    return text


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length:
            self.rfile.read(length)
        good = self.path.startswith("/healthz") or chance.random() < 0.9
        status = 200 if good else chance.choice([204, 301, 400, 401, 404, 409, 410, 422, 429, 500, 503])
        if "/events" in self.path:
            return self.stream()
        problem = {"title": "x", "status": status, "detail": "no \x1b[1m", "in": "input",
                   "violations": [{"path": "/a", "message": "bad \x07"}] * 3}
        value = document(self.path) if status == 200 else problem
        body = (json.dumps(value) if self.path.startswith("/healthz") else text_of(value)).encode("utf-8", "surrogatepass")
        if chance.random() < 0.02:
            body = bytes(chance.randrange(256) for _ in range(2000))
        if chance.random() < 0.02:
            self.wfile.write(body)  # no head at all
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        lies = chance.random() < 0.02
        self.send_header("Content-Length", str(len(body) + (50 if lies else 0)))
        self.close_connection = lies
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for i in range(chance.choice([1, 5, 30])):
            kind = chance.choice(["step.started", "step.completed", "node.started", "log", "run.suspended", "?"])
            data = text_of(dict(EVENT, kind=kind, message="m\x1b[1m"))
            name = chance.choice([f"1.{i}", "x" * 300, "99999999999999999999999.5", "-1"])
            self.wfile.write(f"id: {name}\nevent: x\ndata: {data}\n\n".encode("utf-8", "surrogatepass"))
        self.wfile.write(f"id: 2.0\nevent: x\ndata: {json.dumps(dict(EVENT, kind='run.completed'))}\n\n".encode())
        self.close_connection = True

    def do_GET(self):
        try:
            self.answer()
        except OSError:
            pass

    do_POST = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
what = [["list"], ["list", "--json"], ["show", "r1"], ["show", "r1", "--json"], ["why", "r1"], ["why", "r1", "--json"],
        ["logs", "r1"], ["logs", "r1", "--json"], ["logs", "r1", "-f"], ["wait", "r1", "--timeout", "1s"], ["workflows"],
        ["run", "w"], ["run", "w", "--wait", "--run-id", "r1"], ["cancel", "r1"], ["signal", "r1", "go"],
        ["decide", "r1", "resume"], ["complete", "r1", "h", "1"]]
good = 0


def bounded():
    if "ASAN_OPTIONS" not in os.environ:  # which reserves terabytes
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


for i in range(rounds):
    args = command + what[i % len(what)] + ["--server", url]
    try:
        done = subprocess.run(args, capture_output=True, stdin=subprocess.DEVNULL, timeout=float(os.environ.get("LIMIT", "30")), preexec_fn=bounded)
    except subprocess.TimeoutExpired:
        endless = "-f" in args or "--wait" in args  # a server that never ends its run is waited for
        good += endless
        if not endless:
            print(f"# round {i}, seed {seed}: still running after 30 s: {' '.join(args)}", flush=True)
        continue
    out = done.stdout + done.stderr
    if done.returncode < 0 or done.returncode > 5:
        print(f"# round {i}, seed {seed}: ended with {done.returncode}: {' '.join(args)}\n{done.stderr[-3000:]!r}", flush=True)
    elif "--json" not in args and any(c in out for c in (b"\x1b", b"\x07", b"\x00")):
        print(f"# round {i}, seed {seed}: a control character came through: {' '.join(args)}\n# {out[:600]!r}", flush=True)
    else:
        good += 1
print(good)
