/**
 * connections.ts: a worker's connections: one to the engine that it was given and, if several engines share the store there, one to each of
 * the others. Its credits are divided among them, at least one each: a member without any would wait for this worker for ever.
 */
import { Connection, type Address, type ConnectionOptions, type Member } from "./connection.js";

const LEAVE_MS = 10_000;
const REFUSED_MS = 5000;
const MOST = 64;

export interface ConnectionsOptions extends ConnectionOptions {
  /** For engines of other machines. */
  token?: string;
  /** How long it waits before it tries a member again that has refused it. */
  refusedMs?: number;
}

export class Connections {
  /** To the engine that it was given: calls go there. */
  readonly first: Connection;
  private readonly others = new Map<string, Connection>();
  private readonly told = new WeakMap<Connection, Member[]>();
  private member = 0;
  private closed = false;
  /** The first address has TLS: then the token goes to nobody without it. */
  private secure = false;

  constructor(private readonly options: ConnectionsOptions) {
    this.first = new Connection({
      ...options,
      address: async () => {
        const address = await options.address();
        this.secure = address.tls === true;
        return address;
      },
      onReady: () => this.divide(),
      onLost: () => this.divide(),
      onMembers: (self, members) => {
        this.member = self;
        this.follow(this.first, members);
      },
    });
  }

  async close(graceMs: number): Promise<void> {
    this.closed = true;
    await Promise.all([this.first, ...this.others.values()].map((one) => one.close(graceMs)));
  }

  /** A member counts if any engine that is connected knows it: they hear of each other within a second or two. */
  private follow(from: Connection, members: Member[]): void {
    this.told.set(from, members);
    if (this.closed) return;
    const wanted = new Map<string, Address>();
    const up = [this.first, ...this.others.values()].filter((one) => one.isReady || one === from);
    for (const { id, workers } of up.flatMap((one) => this.told.get(one) ?? [])) {
      const address = parse(workers, this.options.token);
      const allowed = address !== undefined && (address.tls === true || !this.secure);
      if (id !== this.member && allowed && wanted.size < MOST) wanted.set(workers, address);
    }
    for (const [url, connection] of this.others) {
      if (wanted.has(url)) continue;
      this.others.delete(url);
      void connection.close(LEAVE_MS);
    }
    for (const [url, address] of wanted) if (!this.others.has(url)) this.add(url, address);
    this.divide();
  }

  private add(url: string, address: Address): void {
    const { onTaken: _, ...options } = this.options;
    const connection = new Connection({
      ...options,
      address: () => Promise.resolve(address),
      credits: 1,
      onReady: () => this.divide(),
      onLost: () => this.divide(),
      onMembers: (_self, members) => this.follow(connection, members),
    });
    this.others.set(url, connection);
    connection.open().catch(() => undefined);
    void connection.over().then(() => {
      // It refuses us, now or when it was connected to again; or it was left, and is no longer the one. Refusals of members may pass:
      // a token that is not known there yet, a file of the same name.
      const again = (): void => {
        if (!this.closed && this.others.get(url) === connection) this.add(url, address);
      };
      setTimeout(again, this.options.refusedMs ?? REFUSED_MS).unref();
    });
  }

  private divide(): void {
    const up = [this.first, ...this.others.values()].filter((one) => one.isReady);
    const { credits } = this.options;
    up.forEach((one, i) => one.setCredits(Math.max(1, Math.floor(credits / up.length) + (i < credits % up.length ? 1 : 0))));
  }
}

function parse(url: string, token: string | undefined): Address | undefined {
  const match = /^(tls|tcp):\/\/(.+):(\d+)$/.exec(url);
  if (match === null) return undefined;
  const [, kind, host, port] = match as unknown as [string, string, string, string];
  return {
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port),
    tls: kind === "tls",
    ...(token === undefined ? {} : { token }),
  };
}
