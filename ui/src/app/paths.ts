/* paths.ts: where runs are, in the page's own addresses.
 *
 * "." and ".." are good ids of runs, but in a path a browser takes them for steps up and down, also when they are
 * written %2E. Such a run has an address with a tilde before its id, which no id has. */

export const isFolded = (name: string) => name === "." || name === "..";

/** `rest`: a tab, a query. */
export function runPath(runId: string, rest = ""): string {
  return `/runs/${isFolded(runId) ? "~" : ""}${encodeURIComponent(runId)}${rest}`;
}

/** The id that a part of an address is for; null when it is for none. */
export function runIdIn(part: string): string | null {
  const id = nameIn(part);
  return id?.startsWith("~") && isFolded(id.slice(1)) ? id.slice(1) : id;
}

/** The name that a part of an address is for; null when its escapes are no text. */
export function nameIn(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
