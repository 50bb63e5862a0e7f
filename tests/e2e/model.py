"""model.py: a scripted endpoint that speaks both protocols of models (/v1/chat/completions, /v1/messages).

What it does is chosen by the name of the model; each request is a line of FOLDER/requests, as JSON. Says its port on
stdout, and ends when stdin does. Usage: model.py FOLDER
"""
import http.server, json, sys, threading, time

folder = sys.argv[1]
lock = threading.Lock()
seen = {}


def note(path, headers, body):
    with lock:
        with open(folder + "/requests", "a", encoding="utf-8") as f:
            f.write(json.dumps({"path": path, "key": headers.get("authorization") or headers.get("x-api-key"),
                                "version": headers.get("anthropic-version"), "body": body}) + "\n")
        key = body.get("model", "")
        seen[key] = seen.get(key, 0) + 1
        return seen[key]


def answers(body):
    return sum(1 for m in body["messages"] if m["role"] == "assistant")


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

    def reply(self, model, text=None, calls=()):
        """calls: (id, name, arguments as a text)"""
        if self.path.endswith("/completions"):
            message = {"role": "assistant", "content": text}
            if calls:
                message["tool_calls"] = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                                         for i, n, a in calls]
            self.send(200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
                            "choices": [{"index": 0, "message": message, "logprobs": None,
                                         "finish_reason": "tool_calls" if calls else "stop"}],
                            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
            return
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": i, "name": n, "input": json.loads(a)} for i, n, a in calls]
        self.send(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
                        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
                        "usage": {"input_tokens": 10, "output_tokens": 5}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = body["model"]
        times = note(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        turn = answers(body)
        if model == "busy" and times <= 2:
            self.send((429, 529)[times - 1], {"error": {"message": "slow down"}}, [("Retry-After", "1")])
        elif model == "refuses":
            self.send(401, {"error": {"message": "bad key " + (self.headers.get("Authorization") or "")}})
        elif model.startswith("broken") and times == 1:
            self.send(500, {"error": {"message": "on fire"}})
        elif model == "html":
            self.send(200, b"<html>hello</html>", kind="text/html")
        elif model == "empty":
            self.send(200, {})
        elif model == "cut":
            self.send(200, b'{"choices":[{"mess', cut=1000)
        elif model == "slow":
            time.sleep(30)
        elif model == "two-seconds":
            time.sleep(2)
            self.reply(model, "late")
        elif model == "tools" and turn == 0:
            self.reply(model, "let me see", [("c1", "add", '{"a": 2, "b": 3}'), ("c2", "nobody", "{}"),
                                             ("c3", "add", '{"a": "x"}')])
        elif model == "never" or (model == "counts" and turn < 8):
            self.reply(model, None, [("c%d" % turn, "add", json.dumps({"a": turn, "b": 1}))])
        elif model == "no-json" and turn == 0:
            self.reply(model, None, [("c1", "add", "{")])
        elif model == "value":
            self.reply(model, '```json\n{"n": 7}\n```')
        elif model == "wrong-once":
            self.reply(model, '{"n": "seven"}' if turn == 0 else '{"n": 7}')
        elif model == "wrong":
            self.reply(model, "seven")
        else:
            self.reply(model, "hello")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048


server = Server(("127.0.0.1", 0), Model)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
