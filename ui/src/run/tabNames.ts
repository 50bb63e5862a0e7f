/** The tabs that show nodes, one of which can be looked at; the first is the usual one. */
const OF_NODES = ["graph", "timeline", "nodes"];

/** The tab of an address, if it shows nodes, else the one that a link to a node opens. */
export function tabIn(location: string): string {
  return OF_NODES.find((id) => location.endsWith(`/${id}`)) ?? OF_NODES[0]!;
}
