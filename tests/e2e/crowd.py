#!/usr/bin/env python3
"""crowd.py: many connections to a server at once, of the kinds that nobody likes.

Usage: crowd.py PORT KIND COUNT      prints how many of COUNT connections the server kept: KEPT
Kinds: silent (say nothing), drip (a header that never ends), noise (bytes that are no HTTP)
Opens them all, waits until the server has said to each what it has to say, and looks.
"""
import random, resource, select, socket, sys, time

port, kind, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 64), hard))
count = min(count, hard - 64)
chance = random.Random(1)
said = {
    "silent": lambda: b"",
    "drip": lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "noise": lambda: bytes(chance.randrange(256) for _ in range(200)) + b"\r\n\r\n",
}[kind]

alive = {}
poll = select.epoll()


def look(wait):
    for fd, _ in poll.poll(wait):
        try:
            if alive[fd].recv(4096):
                continue
        except OSError:
            pass
        poll.unregister(fd)
        alive.pop(fd).close()


for _ in range(count):
    s = socket.socket()
    try:
        s.connect(("127.0.0.1", port))
        s.send(said())
    except OSError:
        s.close()
        continue
    s.setblocking(False)
    alive[s.fileno()] = s
    poll.register(s.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
    look(0)
quiet = 0
while alive and quiet < 6:  # until nothing changes any more
    before = len(alive)
    look(0.5)
    quiet = quiet + 1 if before == len(alive) else 0
print(len(alive))
sys.stdout.flush()
if len(sys.argv) > 4:  # stay until the other side ends them all
    until = time.monotonic() + float(sys.argv[4])
    while alive and time.monotonic() < until:
        look(0.5)
    print(len(alive))
