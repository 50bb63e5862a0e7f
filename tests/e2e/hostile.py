"""hostile.py FOLDER: a server that does not mean well, for http.sh. Prints its two ports: http, https (with a
certificate in FOLDER that nobody trusts); ends with its stdin."""
import http.server, os, ssl, sys, threading, time, zlib

BOMB = zlib.compress(bytes(17 << 20), 1)  # a few kB that become 17 MB of nothing


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    busy = 0

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def raw(self, text):
        self.close_connection = True
        self.wfile.write(text)

    def do_GET(self):
        path = self.path
        try:
            if path == "/ok":
                self.answer(200, b'{"pieces": 10}', Content_Type="application/json")
            elif path == "/busy":
                Handler.busy += 1
                if Handler.busy < 2:
                    self.answer(429, b"slowly", Retry_After="3600")
                else:
                    self.answer(200, b'"at last"')
            elif path == "/missing":
                self.answer(404, b"no such tree")
            elif path == "/drop":
                self.close_connection = True
            elif path == "/stall":
                time.sleep(60)
            elif path == "/chunks":
                self.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hex\r\n")
            elif path == "/headers":
                self.raw(b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 100000)
            elif path == "/bomb":
                self.answer(200, BOMB, Content_Encoding="deflate")
            elif path == "/circle":
                self.answer(302, b"", Location="/circle")
        except (BrokenPipeError, ConnectionResetError):
            pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # the other side hangs up on us: as it should


plain = Server(("127.0.0.1", 0), Handler)
secret = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(sys.argv[1], "cert.pem"), os.path.join(sys.argv[1], "key.pem"))
secret.socket = context.wrap_socket(secret.socket, server_side=True, do_handshake_on_connect=False)
for server in plain, secret:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(plain.server_port, secret.server_port, flush=True)
sys.stdin.read()
