// loopback.mjs: imported before a public server: it listens on loopback only, and its port is a line of the file $PORT_FILE.
import { writeFileSync } from "node:fs";
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => writeFileSync(process.env.PORT_FILE, `${this.address().port}\n`));
  return listen.call(this, { port: Number(port), host: "127.0.0.1" }, ...rest);
};
