/* LogReader.ts: the lines of a log, read page by page, and on when there are more.
 *
 * One request at a time, each behind the last line that is here: what is read once is not read again, however
 * long the log. A line that is told of while the end is being read is read after that. */
import type { LogLine, Logs } from "../../api/types";

export class LogReader {
  readonly lines: LogLine[] = [];
  /** the first page is here */
  loaded = false;
  /** there may be lines behind these */
  more = true;
  error: unknown = null;
  private next: number | undefined;
  private asked = false;
  private toEnd = false;
  private reading = false;
  private listeners = new Set<() => void>();
  private version = 0;

  constructor(
    private load: (after: number | undefined) => Promise<Logs>,
    /** as many lines are a page; an answer may have fewer and not be the last */
    private page: number,
  ) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  getVersion = (): number => this.version;

  /** Read the next page; `toEnd`: all that there are. */
  async read(toEnd: boolean): Promise<void> {
    this.asked = true;
    this.toEnd ||= toEnd;
    if (this.reading) return;
    this.reading = true;
    let got = 0;
    try {
      while (this.asked || ((this.toEnd || got < this.page) && this.more)) {
        this.asked = false;
        const page = await this.load(this.next);
        for (const line of page.logs) this.lines.push(line);
        got += page.logs.length;
        this.next = page.next;
        this.more = page.logs.length > 0;
        this.loaded = true;
        this.error = null;
        this.tell();
      }
    } catch (error) {
      this.error = error; // what is here stays; who asks again goes on behind it
      this.asked = false;
      this.tell();
    } finally {
      this.reading = false;
      this.toEnd = false;
    }
  }

  private tell(): void {
    this.version++;
    for (const listener of this.listeners) listener();
  }
}
