#!/usr/bin/env python3
"""crowd.py: many connections to a server at once, of the kinds that nobody likes.

Usage: crowd.py PORT KIND COUNT MOST   prints how many of COUNT connections the server kept
Kinds: silent (say nothing), drip (a header that never ends), noise (bytes that are no HTTP)
Opens them all, says "there" on stderr, and waits until the server has closed all but MOST: for a minute.
"""
import random, resource, select, socket, sys, time

port, kind, count, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
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
print("there", file=sys.stderr, flush=True)
until = time.monotonic() + 60
while len(alive) > most and time.monotonic() < until:
    look(0.5)
print(len(alive))
