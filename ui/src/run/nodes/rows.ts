/* rows.ts: a tree of which only a part is here, as rows one below the other.
 *
 * A list of twenty thousand children is one piece of rows until somebody opens one of them, so all this
 * is in proportion to what is open. */
export interface OpenNode {
  path: string;
  /** its place among its parent's children */
  index: number;
}

export interface Piece {
  /** the number of its first row */
  start: number;
  count: number;
  parent: string;
  /** the place of its first row among the parent's children */
  from: number;
  /** of how many */
  of: number;
  depth: number;
}

export interface Row {
  parent: string;
  index: number;
  of: number;
  depth: number;
}

export interface Rows {
  pieces: Piece[];
  count: number;
  /** the parents whose children are listed, from the top down */
  parents: string[];
}

/** `open`: the children of a parent that are open, in the order of their places. */
export function rowsOf(total: (parent: string) => number, open: (parent: string, depth: number) => OpenNode[]): Rows {
  const rows: Rows = { pieces: [], count: 0, parents: [] };
  const visit = (parent: string, depth: number) => {
    const of = total(parent);
    let from = 0;
    const piece = (to: number) => {
      if (to <= from) return;
      rows.pieces.push({ start: rows.count, count: to - from, parent, from, of, depth });
      rows.count += to - from;
      from = to;
    };
    rows.parents.push(parent);
    for (const child of open(parent, depth)) {
      if (child.index < from || child.index >= of) continue;
      piece(child.index + 1);
      visit(child.path, depth + 1);
    }
    piece(of);
  };
  visit("", 0);
  return rows;
}

export function rowAt(rows: Rows, number: number): Row | undefined {
  let low = 0;
  let high = rows.pieces.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const piece = rows.pieces[middle]!;
    if (number < piece.start) high = middle - 1;
    else if (number >= piece.start + piece.count) low = middle + 1;
    else return { parent: piece.parent, index: piece.from + number - piece.start, of: piece.of, depth: piece.depth };
  }
  return undefined;
}

/** The row of the node whose children these are: the one above the first of them. */
export function ownerRow(rows: Rows, parent: string): number {
  return (rows.pieces.find((piece) => piece.parent === parent)?.start ?? 0) - 1;
}
