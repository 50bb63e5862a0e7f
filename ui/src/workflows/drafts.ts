/* drafts.ts: what somebody has typed into a form and not sent yet, kept while the browser's tab is: over a reload, a
 * look at another page, a session that ends. Not longer: it may be nobody else's business. */
export interface Draft {
  /** the input, as JSON, or what should become it */
  text: string;
  asJson: boolean;
  runId: string;
}

const keyOf = (workflow: string) => `rival.draft ${workflow}`;

export function readDraft(workflow: string): Draft | null {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(keyOf(workflow)) ?? "null");
    if (typeof kept !== "object" || kept === null) return null;
    const { text, asJson, runId } = kept as Partial<Draft>;
    return { text: String(text ?? ""), asJson: asJson === true, runId: String(runId ?? "") };
  } catch {
    return null; // storage may be forbidden, and what is in it anything
  }
}

export function keepDraft(workflow: string, draft: Draft): void {
  try {
    sessionStorage.setItem(keyOf(workflow), JSON.stringify(draft));
  } catch {
    /* then there is none */
  }
}

export function dropDraft(workflow: string): void {
  try {
    sessionStorage.removeItem(keyOf(workflow));
  } catch {
    /* nor was there one */
  }
}
