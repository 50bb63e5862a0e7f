#!/usr/bin/env python3
"""members.py: three servers share a PostgreSQL store while members are killed, stopped past their lease and continued, cut off
from the database, and while the database is restarted and failed over to its synchronous standby: every run completes, and nothing is
recorded twice.

Each fault once, with a few runs, always. By `make test-long` (MINUTES is set) 5,000 runs under all faults, then rounds of one fault each
until 200 or until the time is over; then a takeover may also take no longer than the lease and two seconds, by the server's clock.
A member is cut off by a proxy of ours, which stops forwarding and closes nothing; in the long form, where that is allowed, by taking down the
link of its network namespace. SEED repeats the order of things, not their timing."""
import concurrent.futures, glob, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time, urllib.request

SOURCE = os.environ.get("RIVAL_SOURCE") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("RIVAL_BUILD") or os.path.join(SOURCE, "build")
LONG = "MINUTES" in os.environ
RUNS, ROUND_RUNS, ROUNDS = (int(os.environ.get("RUNS", 5000)), 100, int(os.environ.get("ROUNDS", 200))) if LONG else (0, 40, 5)
LEASE_S = 5
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
PATIENCE = 600 if LONG else 120  # for what has to come, on a machine that stands still
END = time.monotonic() + float(os.environ.get("MINUTES", 0)) * 60
PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[-2]))[-1:]
AS_OWNER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"] if os.getuid() == 0 else []
chance = random.Random(SEED)

WORKFLOW = """\
name: wf
input: { type: object, properties: { n: { type: integer } } }
steps:
  - first: { value: .input.n }
  - nap: { delay: 200ms }
  - mark: { command: [sh, -c, 'echo "$RIVAL_RUN_ID" >>marks'] }
  - rest: { delay: 700ms }
  - last: { value: .input.n }
"""
STEPS = 5
TOKEN = "not-a-real-token-of-this-test"


def until(says, what):
    by = time.monotonic() + PATIENCE
    while True:
        got = what()
        if got:
            return got
        if time.monotonic() > by:
            raise SystemExit("waited in vain: %s" % says)
        time.sleep(0.05)


class Proxy:
    """Between a member and a database. `cut`: nothing passes, and no connection is closed."""

    def __init__(self, to, host):
        self.to, self.gate = to, threading.Event()
        self.gate.set()
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            inner, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(inner,), daemon=True).start()

    def serve(self, inner):
        self.gate.wait()
        outer = socket.socket(socket.AF_UNIX)
        try:
            outer.connect(self.to)
        except OSError:
            inner.close()
            outer.close()
            return
        back = threading.Thread(target=self.pump, args=(outer, inner), daemon=True)
        back.start()
        self.pump(inner, outer)
        back.join()
        inner.close()
        outer.close()

    def pump(self, a, b):
        try:
            while data := a.recv(65536):
                self.gate.wait()
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Link:
    """A network namespace for a member: its link to us can be taken down."""

    def __init__(self, number):
        self.name, self.ours, self.theirs = "rv%d-%d" % (os.getpid(), number), "10.213.%d.1" % number, "10.213.%d.2" % number
        self.device = "rv%dx%d" % (os.getpid() % 100000, number)
        self.ip("netns", "add", self.name)
        try:
            self.ip("link", "add", self.device, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            self.ip("address", "add", self.ours + "/30", "dev", self.device)
            self.set(True)
            for words in (("address", "add", self.theirs + "/30", "dev", "eth0"), ("link", "set", "dev", "eth0", "up"),
                          ("link", "set", "dev", "lo", "up")):
                self.ip("-n", self.name, *words)
        except subprocess.CalledProcessError:
            self.remove()
            raise

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def set(self, up):
        self.ip("link", "set", "dev", self.device, "up" if up else "down")

    def remove(self):
        for words in (("link", "del", self.device), ("netns", "del", self.name)):
            subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Database:
    """A server of our own, at a socket in a folder: nobody else can be given its port."""

    def __init__(self, folder, name, port):
        self.data, self.log, self.port = os.path.join(folder, name), os.path.join(folder, name + ".log"), port
        self.folder, self.socket = folder, os.path.join(folder, ".s.PGSQL.%d" % port)

    def program(self, name, *args, check=True):
        done = subprocess.run(AS_OWNER + [os.path.join(PROGRAMS[0], name), *args], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode != 0:
            raise SystemExit("%s: %s" % (name, done.stdout))
        return done.stdout

    def configure(self, more=""):
        with open(os.path.join(self.data, "postgresql.auto.conf"), "a") as conf:
            conf.write("port = %d\nlisten_addresses = ''\nunix_socket_directories = '%s'\nfsync = off\n"
                       "max_connections = 200\nwal_level = replica\nhot_standby = on\n%s" % (self.port, self.folder, more))

    def control(self, *args, check=True):
        # its output goes to a file: who waits for a pipe would wait for the server
        with open(os.devnull, "w") as nowhere:
            rc = subprocess.call(AS_OWNER + [os.path.join(PROGRAMS[0], "pg_ctl"), "-D", self.data, "-l", self.log, "-w", "-t", "300", *args],
                                 stdin=subprocess.DEVNULL, stdout=nowhere, stderr=nowhere)
        if check and rc != 0:
            raise SystemExit("pg_ctl %s: %s" % (" ".join(args), open(self.log, errors="replace").read()[-2000:]))

    def create(self):
        self.program("initdb", "-D", self.data, "-A", "trust", "-U", "rival", "--no-sync")
        self.configure()
        self.control("start")

    def follow(self, primary):
        """A synchronous standby of that one: nothing is committed there that is not here."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.program("pg_basebackup", "-D", self.data, "-h", self.folder, "-p", str(primary.port), "-U", "rival", "-R", "-X", "stream",
                     "-c", "fast", "--no-sync")
        self.configure("synchronous_standby_names = ''\n")
        self.control("start")
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run("SELECT pg_reload_conf()")
        until("the standby is synchronous",
              lambda: primary.run("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'") == "1")

    def run(self, sql, check=True):
        done = subprocess.run([os.path.join(PROGRAMS[0], "psql"), "-XAtq", "-h", self.folder, "-p", str(self.port), "-U", "rival", "-d", "postgres",
                               "-c", sql], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if check and done.returncode != 0:
            raise SystemExit("%s: %s" % (sql, done.stderr))
        return done.stdout.strip()


class Member:
    def __init__(self, storm, number):
        self.storm, self.number, self.process = storm, number, None
        self.link = None
        if LONG:
            try:
                self.link = Link(number)
            except (OSError, subprocess.CalledProcessError):
                pass  # not allowed here: the proxies cut
        self.host = self.link.ours if self.link else "127.0.0.1"
        self.proxies = [Proxy(d.socket, self.host) for d in storm.databases]
        self.folder = os.path.join(storm.folder, "run%d" % number)
        os.mkdir(self.folder, 0o700)

    def start(self):
        hosts = ",".join("%s:%d" % (self.host, proxy.port) for proxy in self.proxies)
        inside, listen = (["ip", "netns", "exec", self.link.name], self.link.theirs) if self.link else ([], "127.0.0.1")
        url = os.path.join(self.folder, "url")
        with open(url, "wb") as out, open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                inside + [os.path.join(BUILD, "rival"), "serve", "wf.yaml", "--store",
                 "postgres://rival@%s/postgres?connect_timeout=2&tcp_user_timeout=%d" % (hosts, LEASE_S * 1000), "--lease", "%ds" % LEASE_S,
                 "--grace", "1s", "--listen", listen + ":0", "--token-file", "tokens"],
                cwd=self.storm.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=dict(os.environ, XDG_RUNTIME_DIR=self.folder))
        until("member %d serves" % self.number, lambda: self.process.poll() is not None or b"\n" in open(url, "rb").read())
        if self.process.poll() is not None:
            raise SystemExit("member %d: %s" % (self.number, open(os.path.join(self.folder, "log"), errors="replace").read()[-2000:]))
        self.url = open(url).read().strip()

    def slot(self):
        found = self.storm.primary.run("SELECT max(slot) FROM rival.lanes WHERE ended = 0 AND pid = %d" % self.process.pid, check=False)
        return int(found) if found else 0

    def cut(self):
        if self.link:
            self.link.set(False)
        for proxy in self.proxies if not self.link else []:
            proxy.gate.clear()

    def mend(self):
        if self.link:
            self.link.set(True)
        for proxy in self.proxies:
            proxy.gate.set()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.link:
            self.link.remove()


class Storm:
    def __init__(self, folder):
        self.folder = folder
        os.chmod(folder, 0o711)
        inside = os.path.join(folder, "pg")
        os.mkdir(inside)
        os.chmod(inside, 0o755)
        if os.getuid() == 0:
            shutil.chown(inside, "postgres", "postgres")
        self.databases = [Database(inside, "a", 5432), Database(inside, "b", 5433)]
        self.primary, self.standby = self.databases
        self.members, self.next, self.takeovers = [], 0, []

    def begin(self):
        with open(os.path.join(self.folder, "wf.yaml"), "w") as file:
            file.write(WORKFLOW)
        with open(os.path.join(self.folder, "tokens"), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("operator %s\n" % TOKEN)
        self.primary.create()
        self.standby.follow(self.primary)
        self.members = [Member(self, n) for n in range(3)]
        for member in self.members:
            member.start()

    # ---- runs

    def ask(self, member, path, body):
        request = urllib.request.Request("%s/%s" % (member.url, path), json.dumps(body).encode(),
                                         {"Authorization": "Bearer " + TOKEN})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def start_run(self, n):
        """At any member; whoever does not answer is left for another. The same id is the same run."""
        by = time.monotonic() + PATIENCE
        while time.monotonic() < by:
            try:
                return self.ask(chance.choice(self.members), "api/v1/workflows/wf/runs", {"runId": "r%d" % n, "input": {"n": n}})
            except (OSError, ValueError):
                time.sleep(0.05)
        raise SystemExit("nobody starts r%d" % n)

    def start_runs(self, count):
        ids = range(self.next, self.next + count)
        self.next += count
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for _ in pool.map(self.start_run, ids):
                pass

    def completed(self):
        done = self.primary.run("SELECT count(*) FROM rival.runs WHERE status = 'completed'", check=False)
        return done == str(self.next)

    # ---- faults

    def taken_over(self, victim, since):
        """Nobody has runs of that member any more; how long after it was heard of last that is, by the server's clock."""
        until("the runs of member %d are taken over" % victim, lambda: self.primary.run(
            "SELECT 1 FROM rival.lanes WHERE slot = %d AND ended = 0" % victim, check=False) == "" and self.primary.run(
            "SELECT count(*) FROM rival.runs WHERE owner = %d AND active" % victim, check=False) == "0")
        self.takeovers.append(float(self.primary.run("SELECT extract(epoch FROM clock_timestamp()) - %f" % since)))

    def last_heard(self, slot):
        return float(self.primary.run("SELECT extract(epoch FROM renewed) FROM rival.lanes WHERE slot = %d" % slot))

    def kill(self):
        member = chance.choice(self.members)
        slot = member.slot()
        member.process.kill()
        member.process.wait()
        self.taken_over(slot, self.last_heard(slot))
        member.start()

    def stop(self):
        member = chance.choice(self.members)
        slot = member.slot()
        member.process.send_signal(signal.SIGSTOP)
        self.taken_over(slot, self.last_heard(slot))
        member.process.send_signal(signal.SIGCONT)
        until("it joins again", member.slot)

    def cut(self):
        member = chance.choice(self.members)
        slot = member.slot()
        member.cut()
        self.taken_over(slot, self.last_heard(slot))
        member.mend()
        until("it joins again", lambda: member.slot() > slot)

    def restart(self):
        self.primary.control("restart", "-m", chance.choice(["fast", "immediate"]))

    def fail_over(self):
        self.primary.control("stop", "-m", "immediate")
        self.standby.control("promote")
        self.primary, self.standby = self.standby, self.primary
        self.standby.follow(self.primary)

    # ---- rounds

    def round(self, count, faults):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            starting = pool.submit(self.start_runs, count)
            for fault in faults:
                time.sleep(chance.random())  # anywhere in what goes on
                fault()
            starting.result()
        until("all %d runs complete" % self.next, self.completed)

    def wrong(self):
        facts = ("WITH f AS (SELECT run, f ->> 'k' AS kind, f ->> 'a' AS actor FROM rival.turns, "
                 "json_array_elements(('[' || facts || ']')::json) f) ")
        checks = {
            "runs that are completed": ("SELECT count(*) FROM rival.runs WHERE status = 'completed'", self.next),
            "recorded ends of runs": (facts + "SELECT count(*) FROM f WHERE kind = 'run.completed'", self.next),
            "recorded starts of runs": (facts + "SELECT count(*) FROM f WHERE kind = 'run.started'", self.next),
            "recorded ends of steps": (facts + "SELECT count(*) FROM f WHERE kind = 'step.completed'", self.next * STEPS),
            "things recorded twice": (facts + "SELECT count(*) FROM (SELECT 1 FROM f WHERE kind IN ('step.completed', 'run.completed',"
                                      " 'run.started') GROUP BY run, kind, actor HAVING count(*) > 1) x", 0),
            "runs that are owned": ("SELECT count(*) FROM rival.runs WHERE owner <> 0", 0),
        }
        for says, (sql, expected) in checks.items():
            got = int(self.primary.run(sql))
            if got != expected:
                yield "%s: %d instead of %d" % (says, got, expected)
        with open(os.path.join(self.folder, "marks")) as file:
            marks = file.read().split()
        begun = int(self.primary.run(facts + "SELECT count(*) FROM f WHERE kind = 'step.started' AND actor = '4'"))
        if len(set(marks)) != self.next or len(marks) > begun:
            yield "%d commands ran, of %d runs; %d were begun" % (len(marks), len(set(marks)), begun)
        self.again = len(marks) - self.next

    def end(self):
        for member in self.members:
            member.end()
        for database in self.databases:
            if os.path.exists(os.path.join(database.data, "postmaster.pid")):
                database.control("stop", "-m", "immediate", check=False)


def main():
    if not PROGRAMS:
        raise SystemExit("no PostgreSQL is installed")
    with tempfile.TemporaryDirectory(prefix="rival-members-") as folder:
        storm, rounds, wrong = Storm(folder), 0, []
        faults = [storm.kill, storm.stop, storm.cut, storm.restart, storm.fail_over]
        try:
            storm.begin()
            if RUNS > 0:
                storm.round(RUNS, faults + chance.sample(faults, len(faults)))
            order = chance.sample(faults, len(faults))
            while rounds < ROUNDS and (not LONG or time.monotonic() < END):
                storm.round(ROUND_RUNS, [order[rounds % len(order)]])
                rounds += 1
            wrong = list(storm.wrong())
            slow = [t for t in storm.takeovers if t > LEASE_S + 2]
            if LONG and slow:
                wrong.append("takeovers after %s s" % ", ".join("%.1f" % t for t in slow))
        finally:
            storm.end()
            if sys.exc_info()[0] is not None or wrong:
                for log in glob.glob(os.path.join(folder, "run*", "log")):
                    for line in open(log, errors="replace").readlines()[-10:]:
                        print("# %s: %s" % (log, line.rstrip()[:300]))
        print("1..1")
        cut_by = "links" if storm.members[0].link else "proxies"
        print("%sok 1 - %d runs complete, each step recorded once, over %d rounds of kills, stops, cuts (by %s), restarts and fail-overs; "
              "%d commands ran again; takeovers within %.1f s, lease %d s (SEED=%d)"
              % ("not " if wrong else "", storm.next, rounds, cut_by, storm.again, max(storm.takeovers), LEASE_S, SEED))
        for w in wrong:
            print("# " + w)
        sys.exit(1 if wrong else 0)


main()
