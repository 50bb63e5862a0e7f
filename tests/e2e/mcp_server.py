"""mcp_server.py: a scripted MCP server, by pipes or by HTTP, of the revision that it is told.

Each message that comes is a line of FOLDER/asked, as JSON. Usage: mcp_server.py FOLDER pipe|http REVISION
By HTTP it says its port on stdout, and ends when stdin does.
"""
import base64, http.server, json, os, sys, threading

folder, way, revision = sys.argv[1:4]
MODERN = "2026-07-28"
modern = revision == MODERN
lock = threading.Lock()
extra = []  # tools that came later
sessions = {}


def note(message, headers=None):
    with lock, open(folder + "/asked", "a", encoding="utf-8") as f:
        f.write(json.dumps({"pid": os.getpid(), **message, **({"headers": headers} if headers else {})}) + "\n")


def tools():
    names = ["echo", "value", "mixed", "fail", "refuse", "hang", "die", "crashy", "leak", "grow", "region", "tick"] + extra
    all_tools = [{"name": n, "description": "does " + n, "inputSchema": {"type": "object"}} for n in names]
    all_tools[10]["inputSchema"] = {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Deep-N"}}}}}
    all_tools.append({"name": "twisted", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "object", "x-mcp-header": "Not Good"}}}})
    return all_tools


class Refused(Exception):
    def __init__(self, code, message, data=None, status=200):
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}
        self.status = status


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(params, headers, say):
    name, args = params["name"], params.get("arguments", {})
    if name == "echo":
        return text(args.get("text", ""))
    if name == "value":
        return {**text("a value"), "structuredContent": {"n": args.get("n")}}
    if name == "mixed":
        return {"content": [{"type": "text", "text": "see"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]}
    if name == "fail":
        return {**text("it did not work: " + args.get("why", "")), "isError": True}
    if name == "refuse":
        raise Refused(-32603, "not today")
    if name == "tick":
        token = params["_meta"]["progressToken"]
        for i in (1, 2):
            say({"jsonrpc": "2.0", "method": "notifications/progress",
                 "params": {"progressToken": token, "progress": i, "total": 2, "message": "tick %d" % i}})
        return text("ticked")
    if name == "hang":
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hanging"}})
        return None
    if name == "die":
        os._exit(3)
    if name == "crashy":
        if not os.path.exists(folder + "/crashed"):
            open(folder + "/crashed", "w").close()
            print("about to crash, with " + os.environ.get("TOKEN", "nothing"), file=sys.stderr, flush=True)
            os._exit(7)
        return text("survived")
    if name == "leak":
        return text("the token is %s, the header %s" % (os.environ.get("TOKEN"), (headers or {}).get("Authorization")))
    if name == "grow":
        extra.append("late")
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "region":
        return text("%s %s" % ((headers or {}).get("Mcp-Param-Region"), (headers or {}).get("Mcp-Param-Deep-N")))
    if name in extra:
        return text("late, but there")
    raise Refused(-32602, "there is no tool " + name)


def answer(message, headers, say):
    """The result of a request; None: there will be none."""
    method, params = message["method"], message.get("params", {})
    if modern:
        meta = params.get("_meta", {})
        if method == "initialize":
            raise Refused(-32022, "no handshake here", {"supported": [MODERN]}, 400)
        if meta.get("io.modelcontextprotocol/protocolVersion") != MODERN or \
                not isinstance(meta.get("io.modelcontextprotocol/clientCapabilities"), dict):
            raise Refused(-32602, "_meta", status=400)
        if headers is not None:
            expected = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if method == "tools/call":
                expected["Mcp-Name"] = params["name"]
            for name, value in expected.items():
                if headers.get(name) != value:
                    raise Refused(-32020, "header " + name, status=400)
        if method == "server/discover":
            return {"resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "scripted", "version": "1"}}
        if method == "subscriptions/listen":
            return None
    elif method == "initialize":
        return {"protocolVersion": revision, "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "scripted", "version": "1"}}
    if method == "tools/list":
        at = int(params.get("cursor", "0"))
        page = {"tools": tools()[at:at + 5], "resultType": "complete"}
        if at + 5 < len(tools()):
            page["nextCursor"] = str(at + 5)
        return page
    if method == "tools/call":
        result = call(params, headers, say)
        return None if result is None else {"resultType": "complete", **result}
    raise Refused(-32601, "no method " + method)


def reply(message, headers, say):
    """The answer, and its status by HTTP; (None, 200): none."""
    try:
        result = answer(message, headers, say)
        if result is None:
            return None, 200
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}, 200
    except Refused as refused:
        return {"jsonrpc": "2.0", "id": message["id"], "error": refused.error}, refused.status


def by_pipe():
    def say(message):
        print(json.dumps(message), flush=True)
    print("this line is no message", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        note(message)
        if "id" in message and "method" in message:
            out, _ = reply(message, None, say)
            if out is not None:
                say(out)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", kind="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        note({"method": "GET"}, dict(self.headers))
        self.answer(405)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(message, dict(self.headers))
        if not modern and message.get("method") != "initialize":
            session = self.headers.get("Mcp-Session-Id")
            if session is None:
                return self.answer(400, b"no session")
            if session not in sessions:
                return self.answer(404)
            if os.path.exists(folder + "/forget") and message.get("method") == "tools/call":
                os.unlink(folder + "/forget")
                sessions.clear()
                return self.answer(404)
        if "id" not in message or "method" not in message:
            return self.answer(202)
        said = []
        out, status = reply(message, self.headers, said.append)
        more = []
        if message["method"] == "initialize" and status == 200:
            name = "s%d" % (len(sessions) + 1 + os.getpid())
            sessions[name] = True
            more = [("Mcp-Session-Id", name)]
        if status != 200 or (not said and out is not None):
            return self.answer(status, json.dumps(out).encode(), headers=more)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for item in said + ([out] if out is not None else []):
            self.wfile.write(b"event: message\r\ndata: " + json.dumps(item).encode() + b"\r\n\r\n")
            self.wfile.flush()
        if out is None:
            self.rfile.read(1)  # until the other side hangs up
            note({"method": "hung up"})


if way == "pipe":
    by_pipe()
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
