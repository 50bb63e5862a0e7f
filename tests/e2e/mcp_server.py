"""mcp_server.py: a scripted MCP server, by pipes or by HTTP, of the revision that it is told.

Each message that comes is a line of FOLDER/asked, as JSON. Usage: mcp_server.py FOLDER pipe|http REVISION
By HTTP it says its port on stdout, and ends when stdin does.

Files in FOLDER change what it does: `forget`: the session ends with the next call; `forget-list`: with the next list of tools;
`stream`: revisions of 2025 by HTTP have a stream of the server's own, slow to open, by which questions and changes come.
"""
import base64, http.server, json, os, sys, threading, time

folder, way, revision = sys.argv[1:4]
MODERN = "2026-07-28"
modern = revision == MODERN
lock = threading.Lock()
extra = []  # tools that came later
sessions = {}
streamed = []  # what is said by the stream of the server's own
listeners = []  # of 2026-07-28 by HTTP: what each subscription is told
grown = {"at": 0, "read": 0}  # how often the list has changed, and which state of it was read


def note(message, headers=None):
    with lock, open(folder + "/asked", "a", encoding="utf-8") as f:
        f.write(json.dumps({"pid": os.getpid(), **message, **({"headers": headers} if headers else {})}) + "\n")


def tools():
    names = ["echo", "value", "mixed", "fail", "refuse", "hang", "die", "crashy", "leak", "grow", "region", "tick", "reread"] + extra + ["ask", "asks", "again", "badly", "impatient", "unsure", "work"]
    all_tools = [{"name": n, "description": "does " + n, "inputSchema": {"type": "object"}} for n in names]
    all_tools[10]["inputSchema"] = {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "Deep-N"}}}}}
    for tool in all_tools[-2:]:
        tool["execution"] = {"taskSupport": "optional"}
    all_tools.append({"name": "twisted", "inputSchema": {"type": "object", "properties": {
        "a": {"type": "object", "x-mcp-header": "Not Good"}}}})
    return all_tools


class Refused(Exception):
    def __init__(self, code, message, data=None, status=200):
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}
        self.status = status


def text(words):
    return {"content": [{"type": "text", "text": words}]}


QUESTIONS = {
    "ask": [("who", "Who are you?", {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})],
    "asks": [("first", "The first?", {"type": "object", "properties": {"n": {"type": "integer"}}}),
             ("second", "The second?", {"type": "object", "properties": {"n": {"type": "integer"}}})],
    "badly": [("what", "What?", {"type": "no such type"})],
    "again": [(key, "How many?", {"type": "object", "properties": {"n": {"type": "integer"}}}) for key in ("one", "two")],
}
waiting = {}  # questions of the revisions of 2025: by id, who goes on with the answer


def question(message, schema):
    return {**({"mode": "form"} if revision != "2025-06-18" else {}), "message": message, "requestedSchema": schema}


def has_stream():
    return way == "http" and not modern and os.path.exists(folder + "/stream")


def told(answers):
    return text("; ".join("%s %s" % (a["action"], json.dumps(a.get("content"), sort_keys=True)) for a in answers))


def ask_modern(name, params):
    """2026-07-28: the call is made again, with all answers."""
    if "inputResponses" not in params:
        return {"resultType": "input_required", "requestState": "state of " + name,
                "inputRequests": {key: {"method": "elicitation/create", "params": question(message, schema)}
                                  for key, message, schema in QUESTIONS[name]}}
    if params.get("requestState") != "state of " + name:
        raise Refused(-32602, "another state")
    return told([params["inputResponses"][key] for key, _, _ in QUESTIONS[name]])


def ask_legacy(name, say, then, answers=()):
    """One question after the other; `then` gets the result."""
    if len(answers) == len(QUESTIONS[name]):
        return then(told(answers))
    _, message, schema = QUESTIONS[name][len(answers)]
    with lock:
        qid = "q%d-%d" % (os.getpid(), len(waiting) + 1)
        waiting[qid] = lambda answer: ask_legacy(name, say, then, (*answers, answer))
    put = streamed.append if has_stream() else say
    put({"jsonrpc": "2.0", "id": qid, "method": "elicitation/create", "params": question(message, schema)})


def task(name, status=None):
    """What is known of a task. It is done when there is a file `finish`; a task outlives this process."""
    path = folder + "/task-" + name
    if status is not None:
        with open(path, "w", encoding="utf-8") as f:
            f.write(status)
    if not os.path.exists(path):
        raise Refused(-32602, "there is no task " + name)
    with open(path, encoding="utf-8") as f:
        status = f.read()
    if status == "working" and os.path.exists(folder + "/finish"):
        status = "completed"
    if status.startswith("answered "):  # a task of `unsure`, with the answers
        status = "completed"
    return {"taskId": name, "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
            **({"ttlMs": None, "pollIntervalMs": 100} if modern else {"ttl": None, "pollInterval": 100})}


def read_task(name):
    with open(folder + "/task-" + name, encoding="utf-8") as f:
        return f.read()


def tasks(method, params, say, then):
    known = task(params["taskId"])
    stored = read_task(params["taskId"])
    if method == "tasks/update":
        answers = [params["inputResponses"][key] for key, _, _ in QUESTIONS["asks"]]
        task(params["taskId"], "answered " + told(answers)["content"][0]["text"])
        return {"resultType": "complete"}
    if stored.startswith("answered "):
        if method == "tasks/result":
            return text(stored[9:])
        if method == "tasks/get" and modern:
            known["result"] = {"resultType": "complete", **text(stored[9:])}
        return {"resultType": "complete", **known}
    if stored == "input_required" and modern and method == "tasks/get":
        known["inputRequests"] = {key: {"method": "elicitation/create", "params": question(message, schema)}
                                  for key, message, schema in QUESTIONS["asks"]}
    if stored == "input_required" and not modern and method == "tasks/result":
        def finish(result):
            task(params["taskId"], "answered " + result["content"][0]["text"])
            then(result)
        return ask_legacy("asks", say, finish)
    if method == "tasks/cancel":
        known = task(params["taskId"], "cancelled")
        return {"resultType": "complete"} if modern else known
    if method == "tasks/result":
        return text("worked")
    if modern and known["status"] == "completed":
        known["result"] = {"resultType": "complete", **text("worked")}
    return {"resultType": "complete", **known}


def call(params, headers, say, then):
    name, args = params["name"], params.get("arguments", {})
    if name in QUESTIONS:
        return ask_modern(name, params) if modern else ask_legacy(name, say, then)
    if name == "impatient":  # it asks, and does not wait for the answer
        say({"jsonrpc": "2.0", "id": "q-impatient", "method": "elicitation/create", "params": question(*QUESTIONS["ask"][0][1:])})
        return text("done without you")
    if name in ("work", "unsure"):
        can = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        wants = "io.modelcontextprotocol/tasks" in can.get("extensions", {}) if modern else "task" in params
        if not wants:
            return text("worked at once")
        made = task("t%d" % (1 + len([f for f in os.listdir(folder) if f.startswith("task-")])),
                    "working" if name == "work" else "input_required")
        return {"resultType": "task", **made} if modern else {"task": made}
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
        grown["at"] += 1
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        if has_stream():
            streamed.append(changed)
        elif modern and way == "http":
            for listener in listeners:
                listener.append(changed)
        else:
            say(changed)
        return text("grown")
    if name == "reread":
        if grown["read"] != grown["at"]:
            raise Refused(-32603, "the list was not read again")
        return text("read again")
    if name == "region":
        return text("%s %s" % ((headers or {}).get("Mcp-Param-Region"), (headers or {}).get("Mcp-Param-Deep-N")))
    if name in extra:
        return text("late, but there")
    raise Refused(-32602, "there is no tool " + name)


def answer(message, headers, say, then):
    """The result of a request; None: there will be none, or `then` gets it later."""
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
            if method.startswith("tasks/"):
                expected["Mcp-Name"] = params["taskId"]
            for name, value in expected.items():
                if headers.get(name) != value:
                    raise Refused(-32020, "header " + name, status=400)
        if method == "server/discover":
            return {"resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "scripted", "version": "1"}}
        if method == "subscriptions/listen":
            return None
    elif method == "initialize":
        can = {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}} if revision == "2025-11-25" else {}
        return {"protocolVersion": revision, "capabilities": {"tools": {"listChanged": True}, **can},
                "serverInfo": {"name": "scripted", "version": "1"}}
    if method == "tools/list":
        at = int(params.get("cursor", "0"))
        grown["read"] = grown["at"]
        page = {"tools": tools()[at:at + 5], "resultType": "complete"}
        if at + 5 < len(tools()):
            page["nextCursor"] = str(at + 5)
        return page
    if method == "tools/call":
        result = call(params, headers, say, then)
        return None if result is None else {"resultType": "complete", **result}
    if method.startswith("tasks/") and revision != "2025-06-18":
        return tasks(method, params, say, then)
    raise Refused(-32601, "no method " + method)


def reply(message, headers, say):
    """The answer, and its status by HTTP; (None, 200): none, or it is said later."""
    try:
        result = answer(message, headers, say,
                        lambda late: say({"jsonrpc": "2.0", "id": message["id"], "result": late}))
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
        elif message.get("id") in waiting:
            waiting.pop(message["id"])(message["result"])


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
        if not has_stream():
            return self.answer(405)
        time.sleep(0.5)  # who does not wait for it has time to call a tool before it is there
        note({"method": "stream opens"})
        at = len(streamed)
        self.begin_stream()
        while True:
            at += self.events(streamed[at:])
            time.sleep(0.02)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

    def events(self, items):
        for item in items:
            self.wfile.write(b"event: message\r\ndata: " + json.dumps(item).encode() + b"\r\n\r\n")
            self.wfile.flush()
        return len(items)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(message, dict(self.headers))
        if not modern and message.get("method") != "initialize":
            session = self.headers.get("Mcp-Session-Id")
            if session is None:
                return self.answer(400, b"no session")
            if session not in sessions:
                return self.answer(404)
            for flag, method in (("/forget", "tools/call"), ("/forget-list", "tools/list")):
                if os.path.exists(folder + flag) and message.get("method") == method:
                    os.unlink(folder + flag)
                    sessions.clear()
                    return self.answer(404)
        if "id" not in message or "method" not in message:
            self.answer(202)
            if message.get("id") in waiting:
                waiting.pop(message["id"])(message["result"])
            return None
        said = []
        out, status = reply(message, self.headers, said.append)
        more = []
        if message["method"] == "initialize" and status == 200:
            name = "s%d" % (len(sessions) + 1 + os.getpid())
            sessions[name] = True
            more = [("Mcp-Session-Id", name)]
        if status != 200 or (not said and out is not None):
            return self.answer(status, json.dumps(out).encode(), headers=more)
        self.begin_stream()
        first = said + ([out] if out is not None else [])
        self.events(first)
        if out is None and message["method"] == "subscriptions/listen":
            return self.listen()
        if out is None and (message["method"] == "tasks/result" or
                            message["method"] == "tools/call" and message["params"]["name"] in QUESTIONS):
            return self.late(said, len(first))
        if out is None:
            self.rfile.read(1)  # until the other side hangs up
            note({"method": "hung up"})
        return None

    def listen(self):
        own = []
        listeners.append(own)
        at = 0
        while True:
            at += self.events(own[at:])
            time.sleep(0.02)

    def late(self, said, at):
        """More is said by those who bring answers: until the result was."""
        while True:
            with lock:
                now = said[at:]
            at += self.events(now)
            if any("result" in item for item in now):
                return None
            time.sleep(0.02)


if way == "pipe":
    by_pipe()
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
