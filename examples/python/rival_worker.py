#!/usr/bin/env python3
"""rival_worker.py: a worker for Rival in one file of the standard library.

As a module:

    from rival_worker import Worker, StepError

    worker = Worker(credits=8)

    @worker.step("tree")                     # a function of the workflow "tree"
    def find(ctx):
        ctx.log("looking for %s" % ctx.input["kind"])
        return {"treeId": "oak-123"}

    @worker.step("tree")
    def chop(ctx):
        ctx.describe("chopped " + ctx.step("find")["treeId"])
        return {"pieces": 10}

    worker.workflow("tree", ["find", "chop"])
    worker.run("rival.db.sock")              # beside the store; for ever
    worker.run("tls://host:7070", token=…)   # or a server started with --workers; tcp:// where it has no TLS

If several engines share the store there, it connects to all of them, and divides its credits among them (at least one each).

As a program it offers the workflow above: rival_worker.py STORE.sock | tls://HOST:PORT | tcp://HOST:PORT
The token is in RIVAL_WORKER_TOKEN; RIVAL_CA names a file of certificates to trust in place of the system's.

The protocol is docs/worker-protocol.md. This worker asks for what a step looks at (`get`), runs steps on threads, keeps
answers until they are `taken`, and connects again when the connection is lost.
"""
import hashlib, json, os, queue, random, select, socket, ssl, struct, sys, threading, time

PROTOCOL = 2
FRAME_MAX = 64 << 20
CONNECT_S = 10  # for a connection to be made
SEND_S = 30  # for a frame to be taken: an engine that does not read is lost


class StepError(Exception):
    """An error that says what to do: behavior 'stop', 'continue' or 'retry'."""

    def __init__(self, message, behavior="stop", max_attempts=None, backoff=None):
        super().__init__(message)
        self.behavior, self.max_attempts, self.backoff = behavior, max_attempts, backoff


class Invalid(Exception):
    """An input that a validator refuses: Invalid(("/amount", "must be positive"), …), each with its JSON pointer."""

    def __init__(self, *violations):
        super().__init__("; ".join(message for _, message in violations))
        self.violations = [{"path": path, "message": message} for path, message in violations]


class Gone(Exception):
    """The connection is lost."""


class Context:
    """What a step sees and says."""

    def __init__(self, worker, frame):
        self._worker, self._frame = worker, frame
        self._state, self._replies = {}, queue.Queue()
        self.id, self.run, self.index = frame["id"], frame["run"], frame.get("index")
        self.cancelled = threading.Event()

    def _get(self, part, **more):
        self._worker._send({"type": "get", "id": self.id, "part": part, **more})
        reply = self._replies.get()
        if reply is None:
            raise Gone()
        return reply

    @property
    def input(self):
        return self._frame["input"] if "input" in self._frame else self._get("input").get("json")

    @property
    def item(self):
        return self._frame["item"] if "item" in self._frame else self._get("item").get("json")

    @property
    def steps(self):
        return self._get("steps").get("json", {})

    @property
    def last(self):
        return self._get("last").get("json")

    def step(self, alias):
        """The result of the newest node of that name; None where there is none."""
        return self._get("step", alias=alias).get("json")

    def log(self, message, level=1, **metadata):
        line = {"type": "log", "id": self.id, "level": level, "message": message, "at": int(time.time() * 1000)}
        self._worker._send({**line, "metadata": metadata} if metadata else line)

    def describe(self, text):
        self._state["description"] = text

    def set_state(self, key, value):
        self._state[key] = value


class Worker:
    def __init__(self, credits=8, name=None, first=None):
        self.credits, self.name = credits, name or "python:%d" % os.getpid()
        self._first = first or self  # the connection that was asked for; it has one more for each other member
        self._others, self._members, self._member = {}, [], None
        self._functions, self._plans, self._validators = {}, {}, {}
        self._running, self._answers, self._slots = {}, {}, {}
        self._lock, self._following = threading.Lock(), threading.Lock()
        self._socket = None
        self._session = None
        self._heartbeat = 10
        self._stopping = self._up = False

    # ------------------------------------------------------------------------------ what it offers

    def step(self, workflow=None):
        """Offer a function, for a workflow of this worker, or (None) for `call:` in any file."""
        def take(fn):
            self._functions.setdefault(workflow, {})[fn.__name__] = fn
            return fn
        return take

    def validator(self, workflow):
        """Judge the inputs of runs that are to be started: the function returns what the run gets, or raises Invalid."""
        def take(fn):
            self._validators[workflow] = fn
            return fn
        return take

    def workflow(self, name, steps, **more):
        """A workflow of steps: names of functions, or nodes of a plan document (src/plan/README.md)."""
        nodes = [{"type": "step", "kind": "function", "name": s} if isinstance(s, str) else s for s in steps]
        self._plans[name] = {"name": name, "steps": nodes, **more}

    def _module(self):
        code = b"".join(fn.__code__.co_code for of in self._functions.values() for fn in of.values())
        return hashlib.sha256(code).hexdigest()[:16]

    def _registration(self):
        return {"type": "register", "id": "register", "module": self._module(),
                "workflows": [{"plan": plan, "functions": sorted(self._functions.get(name, {})),
                               "validates": name in self._validators} for name, plan in self._plans.items()],
                "functions": sorted(self._functions.get(None, {}))}

    # ---------------------------------------------------------------------------------- the wire

    def _send(self, frame):
        data = json.dumps(frame, separators=(",", ":")).encode()
        with self._lock:
            if self._socket is None:
                raise Gone()
            try:
                self._socket.settimeout(SEND_S)
                self._socket.sendall(struct.pack(">I", len(data)) + data)
            except OSError:
                raise Gone() from None
            finally:
                self._socket.setblocking(False)

    def _receive(self, sock):
        """Some bytes, b"" at the end. Who is silent for three heartbeats is gone. A TLS socket is for one thread at
        a time, so nothing is read without the lock, and nobody waits with it."""
        silent = 0
        while silent < 3:
            with self._lock:
                try:
                    return sock.recv(1 << 16)
                except (BlockingIOError, ssl.SSLWantReadError):
                    pass
            if not select.select([sock], [], [], self._heartbeat)[0]:
                silent += 1
                self._send({"type": "ping"})
        return b""

    def _frames(self, sock):
        data = bytearray()
        while True:
            try:
                chunk = self._receive(sock)
            except (OSError, ValueError):
                return
            if not chunk:
                return
            data += chunk
            at = 0
            while len(data) - at >= 4:
                (size,) = struct.unpack_from(">I", data, at)
                if size > FRAME_MAX:
                    return
                if len(data) - at - 4 < size:
                    break
                yield json.loads(bytes(data[at + 4:at + 4 + size]))
                at += 4 + size
            del data[:at]

    def _dial(self, address, ca):
        kind, _, place = address.rpartition("://")
        if kind == "":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(place)
            return sock
        host, _, port = place.rpartition(":")
        host = host.strip("[]")
        sock = socket.create_connection((host, int(port)), timeout=CONNECT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return ssl.create_default_context(cafile=ca).wrap_socket(sock, server_hostname=host) if kind == "tls" else sock

    def _connect(self, address, token, ca):
        sock = self._dial(address, ca)
        sock.setblocking(False)
        hello = {"type": "hello", "protocol": PROTOCOL, "role": "worker", "credits": self.credits,
                 "name": self.name, "pid": os.getpid(), "follows": True}
        if token:
            hello["token"] = token
        with self._lock:
            self._socket = sock
            if self._session:
                hello.update(session=self._session, has=list(self._running) + list(self._answers))
        self._slots.clear()
        self._send(hello)
        return sock

    # -------------------------------------------------------------------------------- invocations

    def _run_step(self, ctx):
        frame = ctx._frame
        fn = self._functions.get(frame.get("workflow"), {}).get(frame["function"])
        fn = fn or self._functions.get(None, {}).get(frame["function"])
        try:
            if fn is None:
                raise StepError("this worker has no function '%s'" % frame["function"])
            answer = {"type": "result", "id": ctx.id, "result": fn(ctx)}
            json.dumps(answer)
        except Gone:
            answer = None
        except StepError as e:
            answer = {"type": "error", "id": ctx.id, "error": {"message": str(e)}, "behavior": e.behavior}
            if e.max_attempts:
                answer["maxAttempts"] = e.max_attempts
            if e.backoff:
                answer["backoff"] = e.backoff
        except Exception as e:  # whatever the user's code raises is the step's error
            answer = {"type": "error", "id": ctx.id, "error": {"message": "%s: %s" % (type(e).__name__, e)}}
        if answer is not None and ctx._state:
            answer["state"] = ctx._state
        with self._lock:
            if answer is not None:
                self._answers[ctx.id] = answer
            self._running.pop(ctx.id, None)
        if answer is not None:
            try:
                self._send(answer)
            except Gone:
                pass  # it is sent again when the connection is there again

    def _invoke(self, frame):
        if "inputSlot" in frame:
            frame["input"] = self._slots.get(frame["inputSlot"])
        ctx = Context(self, frame)
        with self._lock:
            self._running[ctx.id] = ctx
        threading.Thread(target=self._run_step, args=(ctx,), daemon=True).start()

    def _validate(self, frame):
        answer = {"type": "valid", "id": frame["id"]}
        try:
            answer["input"] = self._validators[frame["workflow"]](frame.get("input"))
        except Invalid as e:
            answer = {"type": "violations", "id": frame["id"], "violations": e.violations}
        except Exception as e:  # a validator that fails accepts nothing
            text = "the validator failed: %s: %s" % (type(e).__name__, e)
            answer = {"type": "violations", "id": frame["id"], "violations": [{"path": "", "message": text}]}
        try:
            self._send(answer)
        except Gone:
            pass  # the engine decides without it

    def _value(self, frame):
        if "slot" in frame and "json" in frame:
            self._slots[frame["slot"]] = frame["json"]
        elif "slot" in frame:
            frame["json"] = self._slots.get(frame["slot"])
        ctx = self._running.get(frame.get("id"))
        if ctx is not None:
            ctx._replies.put(frame)

    def _hear(self, frame):
        kind = frame["type"]
        if kind == "invoke":
            self._invoke(frame)
        elif kind == "validate":
            threading.Thread(target=self._validate, args=(frame,), daemon=True).start()
        elif kind == "value":
            self._value(frame)
        elif kind == "forget":
            self._slots.clear()
        elif kind == "taken":
            for i in frame["ids"]:
                self._answers.pop(i, None)
        elif kind == "cancel":
            ctx = self._running.get(frame["id"])
            if ctx is not None:
                ctx.cancelled.set()
        elif kind == "ping":
            self._send({"type": "pong"})
        elif kind == "hello":
            if not frame.get("resumed"):
                self._answers.clear()
            self._session, self._heartbeat = frame["session"], frame.get("heartbeatMs", 10000) / 1000
            self._send(self._registration())
            self._up = True
            self._first._follow(self, frame)
            for answer in list(self._answers.values()):
                self._send(answer)
        elif kind == "members":
            self._first._follow(self, frame)
        elif kind == "error":
            if frame.get("id") == "register" and self._first is self:
                raise SystemExit("the engine refuses: " + frame["message"])
            print("rival_worker: " + frame["message"], file=sys.stderr)
        elif kind == "bye":
            raise Gone()

    # ------------------------------------------------------------------------------------ members

    def _follow(self, connection, frame):
        """An engine says which members its store has; without `members`, who is connected has changed."""
        with self._following:
            connection._members = frame.get("members", connection._members)
            if connection is self:
                self._member = frame.get("member", self._member)
            up = [w for w in (self, *self._others.values()) if w._up]
            # What any engine knows: members hear of each other within a second or two. With nobody to ask, all stays as it is.
            known = [m for w in up for m in w._members]
            wanted = {m["workers"] for m in known if m["id"] != self._member} - {self._address}
            if self._address.startswith("tls:"):  # then the token goes to nobody without TLS
                wanted = {address for address in wanted if address.startswith("tls:")}
            for address in set(self._others) - wanted if up else ():
                self._others.pop(address)._leave()
            for address in wanted - set(self._others):
                other = self._others[address] = Worker(1, self.name, self)
                other._functions, other._plans, other._validators = self._functions, self._plans, self._validators
                threading.Thread(target=other.run, args=(address, self._token, self._ca), daemon=True).start()
            self._divide()

    def _divide(self):
        """Equal shares of the credits, at least one: a member without any would wait for this worker for ever."""
        up = [w for w in (self, *self._others.values()) if w._up]
        for i, w in enumerate(up):
            share = max(1, self._total // len(up) + (i < self._total % len(up)))
            if w.credits != share:
                w.credits = share
                try:
                    w._send({"type": "credits", "credits": share})
                except Gone:
                    pass  # its next hello says it

    def _leave(self):
        """The member is no more: end when nothing runs here for it."""
        self._stopping = True
        try:
            self._send({"type": "credits", "credits": 0})
        except Gone:
            pass
        threading.Thread(target=self._leave_when_idle, daemon=True).start()

    def _leave_when_idle(self):
        while self._running and self._socket is not None:
            time.sleep(0.1)
        self.stop()

    def _lost(self):
        self._up = False
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = None
        for ctx in list(self._running.values()):  # who waits for a value waits no longer
            ctx._replies.put(None)

    def run(self, address, token=None, ca=None):
        """Serve, and connect again when the connection is lost; until stop()."""
        self._address, self._token, self._ca, self._total = address, token, ca, self.credits
        pause = 0.1
        while not self._stopping:
            try:
                sock = self._connect(address, token, ca)
                for frame in self._frames(sock):
                    if frame["type"] == "hello":
                        pause = 0.1
                    self._hear(frame)
            except ssl.SSLError as e:
                print("rival_worker: no TLS with %s: %s" % (address, e), file=sys.stderr)
            except (OSError, Gone):
                pass
            self._lost()
            if not self._first._stopping:
                self._first._follow(self, {})
            time.sleep(pause * (0.5 + random.random()))
            pause = min(pause * 2, 5)

    def stop(self):
        self._stopping = True
        for other in list(self._others.values()):
            other.stop()
        try:
            self._send({"type": "bye"})
        except Gone:
            pass
        self._lost()


def main(argv):
    worker = Worker()

    @worker.step("tree")
    def find(ctx):
        ctx.log("looking for %s" % (ctx.input or {}).get("kind", "any tree"))
        return {"treeId": "oak-123"}

    @worker.step("tree")
    def chop(ctx):
        tree = ctx.step("find")["treeId"]
        ctx.describe("chopped " + tree)
        if (ctx.input or {}).get("blunt"):
            raise StepError("the axe is blunt", behavior="retry", max_attempts=2)
        return {"pieces": 10, "of": tree}

    @worker.validator("tree")
    def judge(given):
        if given is not None and not isinstance(given, dict):
            raise Invalid(("", "must be an object"))
        given = given or {}
        kind = given.get("kind", "oak")
        if kind not in ("oak", "ash", "yew"):
            raise Invalid(("/kind", "must be oak, ash or yew"))
        return {**given, "kind": kind}

    worker.workflow("tree", ["find", "chop"], description="Find a tree and chop it")
    if len(argv) != 2:
        raise SystemExit("usage: rival_worker.py STORE.sock | tls://HOST:PORT | tcp://HOST:PORT")
    worker.run(argv[1], token=os.environ.get("RIVAL_WORKER_TOKEN"), ca=os.environ.get("RIVAL_CA"))


if __name__ == "__main__":
    main(sys.argv)
