/** frames.ts: four bytes of length, then that many bytes of JSON: docs/worker-protocol.md. */
export const MAX_FRAME = 64 * 1024 * 1024;
const MIN_FRAME = 2;
const HEAD = 4;

export interface Frame {
  type: string;
  id?: string;
  [key: string]: unknown;
}

/** Bytes come in, whole frames go out. Memory is taken for bytes that have come, never for what a length promises. */
export class FrameReader {
  private chunks: Buffer[] = [];
  private bytes = 0;
  private wanted = 0; // bytes of the frame that is incomplete, with its head; 0: not known yet

  constructor(private readonly take: (frame: Frame) => void) {}

  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.bytes < Math.max(HEAD, this.wanted)) return;
    const all = this.chunks.length === 1 ? chunk : Buffer.concat(this.chunks, this.bytes);
    let at = 0;
    this.wanted = 0;
    while (all.length - at >= HEAD) {
      const length = all.readUInt32BE(at);
      if (length < MIN_FRAME || length > MAX_FRAME) throw new Error(`a frame of ${length} bytes: must be ${MIN_FRAME} to ${MAX_FRAME}`);
      if (all.length - at - HEAD < length) {
        this.wanted = HEAD + length;
        break;
      }
      const frame: unknown = JSON.parse(all.toString("utf8", at + HEAD, at + HEAD + length));
      at += HEAD + length;
      if (typeof frame !== "object" || frame === null || typeof (frame as Frame).type !== "string")
        throw new Error("a frame must be an object with a 'type'");
      this.take(frame as Frame);
    }
    this.bytes = all.length - at;
    this.chunks = this.bytes > 0 ? [all.subarray(at)] : [];
  }
}

/** Frames go in one by one and leave together, once per turn of the event loop. */
export class FrameWriter {
  private waiting: string[] = [];
  private scheduled = false;

  constructor(private readonly write: (bytes: Buffer) => void) {}

  send(json: string): void {
    this.waiting.push(json);
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    this.scheduled = false;
    if (this.waiting.length === 0) return;
    const frames = this.waiting;
    this.waiting = [];
    let total = 0;
    const lengths = frames.map((json) => {
      const length = Buffer.byteLength(json);
      total += length + HEAD;
      return length;
    });
    const bytes = Buffer.allocUnsafe(total);
    let at = 0;
    frames.forEach((json, i) => {
      bytes.writeUInt32BE(lengths[i]!, at);
      bytes.write(json, at + HEAD, "utf8");
      at += HEAD + lengths[i]!;
    });
    this.write(bytes);
  }
}
