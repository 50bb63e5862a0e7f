import { describe, expect, it } from "vitest";
import { sseParser } from "./sse";

describe("a stream of events", () => {
  it("yields each event once it is whole, however the text was cut", () => {
    const text =
      'retry: 1000\n\nid: 7.0\nevent: run.started\ndata: {"a":1}\n\n: still here\n\nid: 7.1\ndata: x\ndata: y\n\n';
    for (let cut = 0; cut <= text.length; cut++) {
      const parse = sseParser();
      expect([...parse(text.slice(0, cut)), ...parse(text.slice(cut))]).toEqual([
        { id: "7.0", event: "run.started", data: '{"a":1}' },
        { id: "7.1", event: "message", data: "x\ny" },
      ]);
    }
  });
  it("takes CRLF for one line end, also when it is cut in the middle", () => {
    const parse = sseParser();
    expect([...parse("data: a\r"), ...parse("\n\r"), ...parse("\ndata: b\n\n")].map((e) => e.data)).toEqual(["a", "b"]);
  });
});
