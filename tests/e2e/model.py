"""model.py: a scripted endpoint that speaks both protocols of models (/v1/chat/completions, /v1/messages).

What it does is chosen by the name of the model; each request is a line of FOLDER/requests, as JSON. An answer to a
request with "stream": true comes in pieces, as server-sent events. Says its port on stdout, and ends when stdin does.
Usage: model.py FOLDER
"""
import base64, hashlib, http.server, json, os, re, sys, threading, time

folder = sys.argv[1]
lock = threading.Lock()
seen = {}


def note(path, headers, body):
    with lock:
        with open(folder + "/requests", "a", encoding="utf-8") as f:
            f.write(json.dumps({"path": path, "key": headers.get("authorization") or headers.get("x-api-key"),
                                "version": headers.get("anthropic-version"), "body": body}) + "\n")
        key = path + body.get("model", "")
        seen[key] = seen.get(key, 0) + 1
        return seen[key]


def answers(body):
    return sum(1 for m in body["messages"] if m["role"] == "assistant")


TAKEN = {"type", "description", "title", "enum", "const", "required", "items", "anyOf", "properties", "additionalProperties"}


def refused(schema):
    """What structured output of /v1/messages has against a schema; None: nothing."""
    if set(schema) - TAKEN:
        return "unsupported: " + ", ".join(sorted(set(schema) - TAKEN))
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return "'additionalProperties' must be false"
    inner = list(schema.get("properties", {}).values()) + schema.get("anyOf", [])
    inner += [schema["items"]] if "items" in schema else []
    return next((why for why in map(refused, inner) if why), None)


def enclosed(part):
    """What a part of a prompt is: its kind, type and name, and the hash of its bytes. Raises if it is none of its protocol."""
    def url(text):
        kind, data = re.fullmatch(r"data:([a-z/]+);base64,(.*)", text).groups()
        return kind, base64.b64decode(data, validate=True)
    name = ""
    if part["type"] == "text":
        return "text " + part["text"]
    if part["type"] == "image_url":
        kind, data = url(part["image_url"]["url"])
    elif part["type"] == "file":
        kind, data = url(part["file"]["file_data"])
        name = part["file"]["filename"]
    elif part["source"]["type"] == "text":  # of /v1/messages, from here on
        return "%s %s %s %s" % (part["type"], part["source"]["media_type"], part["title"], part["source"]["data"])
    else:
        assert part["type"] in ("image", "document") and part["source"]["type"] == "base64"
        kind, data = part["source"]["media_type"], base64.b64decode(part["source"]["data"], validate=True)
        name = part.get("title", "")
    return "%s %s %s %s" % (part["type"], kind, name or "-", hashlib.sha256(data).hexdigest()[:8])


def pieces(text):
    """As words come from a model: some at a time."""
    return [text[i:i + 5] for i in range(0, len(text or ""), 5)]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def send(self, status, body, headers=(), kind="application/json", cut=0):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) + cut))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        if cut:
            self.close_connection = True

    def reply(self, model, text=None, calls=(), tokens=(10, 5)):
        """calls: (id, name, arguments as a text)"""
        events = self.openai(model, text, calls, tokens) if self.path.endswith("/completions") \
            else self.anthropic(model, text, calls, tokens)
        if self.body.get("stream"):
            self.stream(events[1])
        else:
            self.send(200, events[0])

    def openai(self, model, text, calls, tokens):
        """The answer whole, and as a list of events."""
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        finish = "tool_calls" if calls else "stop"
        message = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                                     for i, n, a in calls]
        whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
                 "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
                 "usage": usage}
        deltas = [{"role": "assistant", "content": ""}] + [{"content": piece} for piece in pieces(text)]
        for k, (i, n, a) in enumerate(calls):
            deltas.append({"tool_calls": [{"index": k, "id": i, "type": "function", "function": {"name": n, "arguments": ""}}]})
            deltas += [{"tool_calls": [{"index": k, "function": {"arguments": piece}}]} for piece in pieces(a)]
        def chunk(choices, **more):
            return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
                    "choices": choices, **more}
        chunks = [chunk([{"index": 0, "delta": d, "logprobs": None, "finish_reason": None}]) for d in deltas]
        chunks.append(chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish}]))
        if self.body.get("stream_options", {}).get("include_usage"):
            chunks.append(chunk([], usage=usage))
        return whole, ["data: %s\n\n" % json.dumps(c) for c in chunks] + ["data: [DONE]\n\n"]

    def anthropic(self, model, text, calls, tokens):
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": i, "name": n, "input": json.loads(a)} for i, n, a in calls]
        finish = "tool_use" if calls else "end_turn"
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
                 "stop_reason": finish, "stop_sequence": None,
                 "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]}}
        start = dict(whole, content=[], stop_reason=None, usage={"input_tokens": tokens[0], "output_tokens": 1})
        events = [{"type": "message_start", "message": start}]
        for k, block in enumerate(content):
            if block["type"] == "text":
                begin, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(text)]
            else:
                begin = dict(block, input={})
                deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces(json.dumps(block["input"]))]
            events.append({"type": "content_block_start", "index": k, "content_block": begin})
            if k == 0:
                events.append({"type": "ping"})
            events += [{"type": "content_block_delta", "index": k, "delta": d} for d in deltas]
            events.append({"type": "content_block_stop", "index": k})
        events.append({"type": "message_delta", "delta": {"stop_reason": finish, "stop_sequence": None},
                       "usage": {"output_tokens": tokens[1]}})
        events.append({"type": "message_stop"})
        return whole, ["event: %s\ndata: %s\n\n" % (e["type"], json.dumps(e)) for e in events]

    def stream(self, events, dropped=False):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            if callable(event):
                event()
                continue
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        if not dropped:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def broken_stream(self, model):
        """Half of an answer, and then what the name of the model says."""
        events = (self.openai if self.path.endswith("/completions") else self.anthropic)(model, "one two three", (), (10, 5))[1]
        half = events[:4]
        name = "" if self.path.endswith("/completions") else "event: content_block_delta\n"
        if model == "stream-cut":
            self.stream(half)
        elif model == "stream-mid":
            self.stream(half + [events[4][:20]])
        elif model == "stream-dropped":
            self.stream(half, dropped=True)
        elif model == "stream-bad":
            self.stream(half + [name + "data: {\"choi\n\n"] + events[4:])
        elif model == "stream-list":
            self.stream(half + [name + "data: []\n\n"] + events[4:])
        else:  # stream-error, stream-busy
            kind = "overloaded_error" if model == "stream-busy" else "api_error"
            error = {"type": "error", "error": {"type": kind, "message": "it broke"}}
            self.stream(half + ["event: error\ndata: %s\n\n" % json.dumps(error)])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body["model"]
        self.body = body
        times = note(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        turn = answers(body)
        format = body.get("output_config", {}).get("format")
        if format and (format["type"] != "json_schema" or refused(format["schema"])):
            self.send(400, {"type": "error", "error": {"type": "invalid_request_error", "message": refused(format["schema"])}})
            return
        if model == "busy" and times <= 2:
            self.send((429, 529)[times - 1], {"error": {"message": "slow down"}}, [("Retry-After", "1")])
        elif model == "refuses":
            self.send(401, {"error": {"message": "bad key " + (self.headers.get("Authorization") or "")}})
        elif model.startswith("broken") and times == 1:
            self.send(500, {"error": {"message": "on fire"}})
        elif model == "breaks-second" and turn == 0:
            self.reply(model, None, [("c1", "add", '{"a": 1, "b": 1}')])
        elif model == "breaks-second" and times == 2:
            self.send(500, {"error": {"message": "on fire"}})
        elif model == "html":
            self.send(200, b"<html>hello</html>", kind="text/html")
        elif model == "empty":
            self.send(200, {})
        elif model == "cut":
            self.send(200, b'{"choices":[{"mess', cut=1000)
        elif model == "stream-busy" and times > 1:
            self.reply(model, "hello")
        elif model.startswith("stream-"):
            self.broken_stream(model)
        elif model == "gated":  # the second half comes when FOLDER/go is there
            whole, events = (self.openai if self.path.endswith("/completions") else self.anthropic)(
                model, "first half, second half", (), (10, 5))
            def gate():
                for _ in range(12000):  # at most two minutes
                    if os.path.exists(folder + "/go"):
                        break
                    time.sleep(0.01)
            self.stream(events[:5] + [gate] + events[5:])
        elif model == "tells-key":
            self.reply(model, "your key: %s, is it not?" % self.headers.get("Authorization"))
        elif model == "slow":
            time.sleep(30)
        elif model == "two-seconds":
            time.sleep(2)
            self.reply(model, "late")
        elif model == "tools" and turn == 0:
            self.reply(model, "let me see", [("c1", "add", '{"a": 2, "b": 3}'), ("c2", "nobody", "{}"),
                                             ("c3", "add", '{"a": "x"}')])
        elif model == "calls" and turn == 0:  # those that the prompt begins with: [[name, arguments], …]
            said = next(m for m in body["messages"] if m["role"] == "user")["content"]
            said = said if isinstance(said, str) else said[0]["text"]
            self.reply(model, None, [("c%d" % i, n, json.dumps(a)) for i, (n, a) in enumerate(json.JSONDecoder().raw_decode(said)[0])])
        elif model == "sees" or (model == "sees-twice" and turn > 0):  # what it was asked with, part by part
            self.reply(model, "; ".join(map(enclosed, body["messages"][0]["content"])))
        elif model == "sees-twice":
            self.reply(model, None, [("c0", "change", "{}")])
        elif model == "first-tool" and turn == 0:  # "oak" for all that its schema requires
            tool = body["tools"][0]["function"]
            self.reply(model, None, [("c0", tool["name"], json.dumps({k: "oak" for k in tool["parameters"]["required"]}))])
        elif model == "never" or (model.startswith("counts-") and turn < int(model[7:])):
            self.reply(model, None, [("c%d" % turn, "add", json.dumps({"a": turn, "b": 1}))])
        elif model == "no-json" and turn == 0:
            self.reply(model, None, [("c1", "add", "{")])
        elif model == "bare-value":
            self.reply(model, '{"n": 7}')
        elif model == "value":
            self.reply(model, '```json\n{"n": 7}\n```')
        elif model == "invoice":  # "Invoice 7: 70.5 EUR"
            number, total = re.findall(r"[0-9.]+", body["messages"][-1]["content"])
            self.reply(model, '{"number": %s, "total": %s}' % (number, total))
        elif model == "wrong-once":
            self.reply(model, '{"n": "seven"}' if turn == 0 else '{"n": 7}')
        elif model == "wrong":
            self.reply(model, "seven")
        else:
            self.reply(model, "hello")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # who asked was killed
            super().handle_error(request, address)


server = Server(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
