/* tap.ts: results as TAP, which scripts/run-tests counts. */
import type { FullConfig, Reporter, Suite, TestCase, TestResult } from "@playwright/test/reporter";

export default class Tap implements Reporter {
  private count = 0;

  onBegin(_config: FullConfig, suite: Suite): void {
    console.log(`1..${suite.allTests().length}`);
  }

  onTestEnd(test: TestCase, result: TestResult): void {
    this.count++;
    const skipped = result.status === "skipped";
    const good = skipped || test.outcome() === "expected";
    const name = test.titlePath().slice(2).join(": ").replace(/[#\n]/g, " ");
    console.log(`${good ? "ok" : "not ok"} ${this.count} - ${name}${skipped ? " # SKIP" : ""}`);
    if (good) return;
    for (const error of result.errors)
      for (const line of (error.stack ?? error.message ?? "").split("\n")) console.log(`#   ${line}`);
  }

  /** What a test says, such as what it measured. */
  onStdOut(said: string | Buffer): void {
    for (const line of said.toString().trimEnd().split("\n")) console.log(`# ${line}`);
  }

  printsToStdio(): boolean {
    return true;
  }
}
