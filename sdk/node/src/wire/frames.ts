/** frames.ts: four bytes of length, then that many bytes of JSON: docs/worker-protocol.md. */
export const MAX_FRAME = 64 * 1024 * 1024;
const MIN_FRAME = 2;
const HEAD = 4;
const MAX_TOGETHER = 1024 * 1024; // bytes of frames that are read as one list
const OPENS = 0x2020205b; // "   ["
const PARTS = 0x2020202c; // "   ,"

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
    const ends: number[] = []; // of the frames that are whole
    let at = 0;
    this.wanted = 0;
    while (all.length - at >= HEAD) {
      const length = all.readUInt32BE(at);
      if (length < MIN_FRAME || length > MAX_FRAME) {
        this.takeAll(all, ends);
        throw new Error(`a frame of ${length} bytes: must be ${MIN_FRAME} to ${MAX_FRAME}`);
      }
      if (all.length - at - HEAD < length) {
        this.wanted = HEAD + length;
        break;
      }
      at += HEAD + length;
      ends.push(at);
    }
    this.bytes = all.length - at;
    this.chunks = this.bytes > 0 ? [all.subarray(at)] : [];
    this.takeAll(all, ends);
  }

  /** Under load many frames come at once: they are read as one list, with their heads as what stands between its members. */
  private takeAll(all: Buffer, ends: number[]): void {
    const end = ends.at(-1);
    if (end === undefined) return;
    let frames: unknown[] | undefined;
    if (ends.length > 1 && end <= MAX_TOGETHER) {
      let at = 0;
      for (const next of ends) {
        all.writeUInt32BE(at === 0 ? OPENS : PARTS, at);
        at = next;
      }
      try {
        frames = JSON.parse(`${all.toString("utf8", 0, end)}]`) as unknown[];
      } catch {
        frames = undefined; // one of them is none: those before it count
      }
    }
    if (frames?.length === ends.length) {
      for (const frame of frames) this.take(checked(frame));
      return;
    }
    let at = 0;
    for (const next of ends) {
      const frame: unknown = JSON.parse(all.toString("utf8", at + HEAD, next));
      at = next;
      this.take(checked(frame));
    }
  }
}

function checked(frame: unknown): Frame {
  if (typeof frame !== "object" || frame === null || typeof (frame as Frame).type !== "string")
    throw new Error("a frame must be an object with a 'type'");
  return frame as Frame;
}

const MAX_IN_TEXT = 64 * 1024;
// eslint-disable-next-line no-control-regex
const BEYOND_ASCII = /[^\x00-\x7f]/;

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
    // One text for all: it becomes bytes in one go. A character is a byte in it.
    let text = "";
    const bytes: Buffer[] = [];
    for (const json of frames) {
      const isLong = json.length > MAX_IN_TEXT;
      const plain = isLong || BEYOND_ASCII.test(json) ? Buffer.from(json) : undefined;
      const length = plain?.length ?? json.length;
      text += String.fromCharCode(length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255);
      if (plain === undefined) text += json;
      else {
        bytes.push(Buffer.from(text, "latin1"), plain);
        text = "";
      }
    }
    bytes.push(Buffer.from(text, "latin1"));
    this.write(bytes.length === 1 ? bytes[0]! : Buffer.concat(bytes));
  }
}
