/* figures.ts: what a text for Prometheus says. Pure. */

/** The figures of a text for Prometheus that have no labels, and those by one: `rival_runs{status="failed"}`. */
export function figuresOf(text: string): Map<string, number> {
  const figures = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#") || line.includes("_bucket{")) continue;
    const space = line.lastIndexOf(" ");
    figures.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return figures;
}
