#!/usr/bin/env python3
"""unread.py: ask a server for much, read nothing of it but the head, and stay.

Usage: unread.py PORT ANSWERS STREAMS PATH STREAM_PATH
Connections come from several loopback addresses, as those of several machines would. Prints, when all have
been answered or 150 s are over: how many answers came with 200, how many with 503, how many of those with a
Retry-After and problem JSON, how many streams began, how many were refused with 503. Ends with its stdin.
"""
import select, socket, sys, time

port, answers, streams = (int(n) for n in sys.argv[1:4])
path, stream_path = sys.argv[4:6]
poll, all_of_them = select.epoll(), {}
for i in range(answers + streams):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.bind((f"127.0.0.{2 + i % 4}", 0))
    s.connect(("127.0.0.1", port))
    is_answer = i >= streams  # streams first: they do not wait for long answers to be made
    asked = path if is_answer else stream_path
    s.send(f"GET {asked} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0.0\r\n\r\n".encode())
    s.setblocking(False)
    all_of_them[s.fileno()] = [s, is_answer, b""]
    poll.register(s.fileno(), select.EPOLLIN | select.EPOLLONESHOT)

waiting, until = set(all_of_them), time.monotonic() + 150
while waiting and time.monotonic() < until:
    for fd, _ in poll.poll(1):
        one = all_of_them[fd]
        try:
            one[2] += one[0].recv(1500)
        except OSError:
            pass
        waiting.discard(fd)
heads = [(is_answer, text) for _, is_answer, text in all_of_them.values()]


def count(is_answer, status, *also):
    return sum(a == is_answer and text.startswith(b"HTTP/1.1 " + status) and all(word in text for word in also)
               for a, text in heads)


print(count(True, b"200"), count(True, b"503"), count(True, b"503", b"Retry-After:", b"application/problem+json"),
      count(False, b"200"), count(False, b"503"), flush=True)
sys.stdin.read()
