"""stranger.py: who comes to the address of workers and should not, or not so: `stranger.py PORT CA WHAT`.

Prints what the server said to it, as one line. CA: "-" where the server has no TLS."""
import json, socket, ssl, struct, sys, time, warnings

warnings.simplefilter("ignore")  # that old versions are deprecated is why they are tried

port, ca, what = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def connect(tls=True):
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    if not tls or ca == "-":
        return sock
    return ssl.create_default_context(cafile=ca).wrap_socket(sock, server_hostname="localhost")


def frame(**members):
    data = json.dumps(members).encode()
    return struct.pack(">I", len(data)) + data


def hear(sock):
    """What comes until the other side hangs up, frame by frame."""
    data, heard = b"", []
    try:
        while chunk := sock.recv(1 << 16):
            data += chunk
    except (OSError, ssl.SSLError):
        pass
    while len(data) >= 4:
        (size,) = struct.unpack_from(">I", data)
        try:
            heard.append(json.loads(data[4:4 + size]))
        except ValueError:  # an alert of TLS
            break
        data = data[4 + size:]
    return heard


def told(heard):
    print(heard[-1].get("message", heard[-1]["type"]) if heard else "nothing")


hello = dict(type="hello", protocol=2, role="worker", credits=1)
if what == "no-token":
    sock = connect()
    sock.sendall(frame(**hello))
    told(hear(sock))
elif what == "wrong-token":
    sock = connect()
    sock.sendall(frame(**hello, token="not-a-token-at-all"))
    told(hear(sock))
elif what == "odd-token":
    sock = connect()
    sock.sendall(frame(**hello, token={"a": [1]}))
    told(hear(sock))
elif what == "viewer-token":
    sock = connect()
    sock.sendall(frame(**hello, token=sys.argv[4]))
    told(hear(sock))
elif what == "client":
    sock = connect()
    sock.sendall(frame(type="hello", protocol=2, role="client", token=sys.argv[4]))
    told(hear(sock))
elif what == "call":  # a worker that is let in may not call
    sock = connect()
    sock.sendall(frame(**hello, token=sys.argv[4]) + frame(type="call", id="c", method="workflows"))
    told(hear(sock))
elif what == "plain":  # on a port that speaks TLS
    sock = connect(tls=False)
    sock.sendall(frame(**hello))
    told(hear(sock))
elif what == "http":
    sock = connect(tls=False)
    sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    told(hear(sock))
elif what == "untrusted":  # the client does not know the certificate
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=20)
        ssl.create_default_context().wrap_socket(sock, server_hostname="localhost")
        print("connected")
    except ssl.SSLError as e:
        print("refused:", e.reason)
elif what == "old":  # TLS 1.1
    try:
        context = ssl.create_default_context(cafile=ca)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20), server_hostname="localhost")
        print("connected")
    except (OSError, ssl.SSLError):
        print("refused")
elif what == "huge":  # a hello of gigabytes: nothing is kept for it
    sock = connect()
    sock.sendall(struct.pack(">I", 48 << 20) + b'{"type":"hello"')
    told(hear(sock))
elif what == "garbage":
    sock = connect(tls=False)
    sock.sendall(b"\x16\x03\x01" + bytes(range(256)) * 40)
    told(hear(sock))
elif what == "crowd":  # as many strangers as there is room for, and more, who say nothing
    held = []
    for _ in range(100):
        held.append(connect(tls=False))
    print("held")
    sys.stdout.flush()
    sys.stdin.readline()
elif what == "drip":  # a good hello, a byte at a time
    sock = connect()
    for byte in frame(**hello, token=sys.argv[4]):
        sock.sendall(bytes([byte]))
        time.sleep(0.001)
    (size,) = struct.unpack(">I", sock.recv(4))
    print(json.loads(sock.recv(size))["type"])
