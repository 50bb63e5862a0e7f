"""older.py: a process of another version that drives a store: it has the lock, and says so at the socket.

    older.py STORE PROTOCOL    until it is killed
"""
import fcntl, json, os, socket, struct, sys

store = os.path.realpath(sys.argv[1])
lock = os.open(store + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.lockf(lock, fcntl.LOCK_EX)
path = store + ".sock"
if os.path.exists(path):
    os.unlink(path)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(8)
print("drives", flush=True)
hello = json.dumps({"type": "result", "protocol": int(sys.argv[2]), "version": "0.0.1", "pid": os.getpid()})
while True:
    peer, _ = listener.accept()
    peer.recv(65536)
    peer.sendall(struct.pack(">I", len(hello)) + hello.encode())
    peer.close()
