#!/usr/bin/env python3
"""workers.py: workers and the engine are killed, and connections cut, while many runs are under way: all of them complete,
nothing is recorded twice, and nobody is blamed.

A few dozen runs always; by `make test-long` (MINUTES is set) 1,000 runs with 50 kills of workers, 50 of the engine and 50 cuts.
Workers are examples/worker.c: two beside the store, two over TCP through a proxy of ours, which is what cuts. SEED repeats the
order of things, not their timing."""
import collections, concurrent.futures, json, os, random, signal, socket, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

SOURCE = os.environ.get("RIVAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("RIVAL_BUILD") or os.path.join(SOURCE, "build")
LONG = "MINUTES" in os.environ
RUNS, EACH = (1000, 50) if LONG else (60, 4)
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
DEADLINE = time.monotonic() + (1800 if LONG else 180)
chance = random.Random(SEED)


def hold_port():
    """A port that is ours over all lives of the engine: bound here, and not listening, nobody else is given it, and who says
    SO_REUSEADDR may listen there."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


class Proxy:
    """Between workers and the engine's address; cut() ends every connection through it."""

    def __init__(self, to):
        self.to, self.pairs, self.lock = to, [], threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            inner, _ = self.listener.accept()
            try:
                outer = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                inner.close()
                continue
            with self.lock:
                self.pairs = [p for p in self.pairs if p[0].fileno() >= 0] + [(inner, outer)]
            for a, b in ((inner, outer), (outer, inner)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            for pair in self.pairs:
                for s in pair:
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            self.pairs = []


class Storm:
    def __init__(self, folder):
        self.held = [hold_port(), hold_port()]
        self.http, self.port = (s.getsockname()[1] for s in self.held)
        self.store = os.path.join(folder, "s.db")
        self.log = open(os.path.join(folder, "log"), "ab")
        self.proxy = Proxy(self.port)
        self.engine, self.workers = None, [None] * 4
        self.again = 0  # steps that were begun more than once

    def start_engine(self):
        self.engine = subprocess.Popen(
            [os.path.join(BUILD, "rival"), "serve", "--store", self.store, "--listen", "127.0.0.1:%d" % self.http,
             "--workers", "127.0.0.1:%d" % self.port], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            cwd=os.path.dirname(self.store))

    def start_worker(self, n):
        address = self.store + ".sock" if n < 2 else "tcp://127.0.0.1:%d" % self.proxy.port
        self.workers[n] = subprocess.Popen([os.path.join(BUILD, "examples", "worker"), address], stdin=subprocess.DEVNULL,
                                           stdout=self.log, stderr=self.log)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def ask(self, path, body=None):
        """None: nobody answers, or not yet."""
        request = urllib.request.Request("http://127.0.0.1:%d/%s" % (self.http, path),
                                         None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as e:
            if e.code in (404, 503):
                return None
            raise SystemExit("%s: %d %s" % (path, e.code, e.read()))
        except (OSError, ValueError):
            return None

    def insist(self, path, body=None):
        while True:
            answer = self.ask(path, body)
            if answer is not None:
                return answer
            if time.monotonic() > DEADLINE:
                raise SystemExit("nobody answers %s" % path)
            time.sleep(0.02)

    def hit(self, what):
        if what == "engine":
            self.kill(self.engine)
            self.start_engine()
        elif what == "cut":
            self.proxy.cut()
        else:
            n = chance.randrange(4)
            self.kill(self.workers[n])
            self.start_worker(n)

    def run(self):
        hits = ["engine"] * EACH + ["cut"] * EACH + ["worker"] * EACH
        chance.shuffle(hits)
        self.start_engine()
        for n in range(4):
            self.start_worker(n)
        with concurrent.futures.ThreadPoolExecutor(16) as starters:
            started = [starters.submit(self.insist, "api/v1/workflows/planks/runs", {"runId": "r%d" % i, "input": {"trees": i}})
                       for i in range(RUNS)]
            for n, what in enumerate(hits): # as many runs between any two of them
                started[n * RUNS // len(hits)].result()
                self.hit(what)
            for one in started:
                one.result()
        while True:
            counts = self.insist("api/v1/counts")
            if counts["running"] == 0 or time.monotonic() > DEADLINE:
                return counts
            time.sleep(0.1)

    def wrong(self, i):
        """What is wrong with a run; None: nothing is."""
        run = self.insist("api/v1/runs/r%d" % i)
        if run["status"] != "completed":
            return "r%d is %s: %s" % (i, run["status"], json.dumps(run.get("suspensions") or run.get("error")))
        if run["results"]["saw"]["result"] != {"planks": i * 16}:
            return "r%d has %s" % (i, run["results"])
        kinds = collections.Counter((e["kind"], e.get("path")) for e in self.insist("api/v1/runs/r%d/history?limit=10000" % i)["events"])
        for path in ("fell", "saw"):
            self.again += kinds[("step.started", path)] > 1
            if kinds[("step.completed", path)] != 1:
                return "r%d: %s completed %d times" % (i, path, kinds[("step.completed", path)])
        return None if kinds[("run.completed", None)] + kinds[("run.completed", "")] == 1 else "r%d: %s" % (i, kinds)

    def end(self):
        for process in self.workers + [self.engine]:
            if process is not None and process.poll() is None:
                self.kill(process)


def main():
    with tempfile.TemporaryDirectory(prefix="rival-storm-") as folder:
        storm = Storm(folder)
        try:
            counts = storm.run()
            wrong = [w for w in map(storm.wrong, range(RUNS)) if w is not None]
        finally:
            storm.end()
        good = not wrong and counts["completed"] == RUNS
        print("1..1")
        print("%sok 1 - %d runs complete, each step recorded once, while workers and the engine were killed %d times each, and "
              "connections cut %d times; %d steps were begun again (SEED=%d)"
              % ("" if good else "not ", RUNS, EACH, EACH, storm.again, SEED))
        if not good:
            print("# %s" % counts)
            for w in wrong[:20]:
                print("# " + w)
            with open(os.path.join(folder, "log"), errors="replace") as log:
                for line in log.readlines()[-20:]:
                    print("# " + line.rstrip()[:300])
        sys.exit(0 if good else 1)


main()
