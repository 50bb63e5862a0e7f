/* ansi.ts: text with the colours that programs write for terminals, as pieces with a look each. All other
 * escapes (moving the cursor, titles) are left out; what a terminal would overwrite is not undone. */

export interface Piece {
  text: string;
  /** "red", "bright-blue", "bold", "dim", "italic", "underline" */
  looks: string[];
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
/* CSI … final byte; OSC … BEL or ST; and the two-byte escapes. */
const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;

interface Style {
  colour: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Style = { colour: "", bold: false, dim: false, italic: false, underline: false };

function styled(before: Style, params: string): Style {
  const codes = params === "" ? [0] : params.split(/[;:]/).map(Number);
  let style = before;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 38 || code === 48)
      i += codes[i + 1] === 5 ? 2 : 4; // of 256, or by red, green and blue: left as it is
    else if (code === 0) style = PLAIN;
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 2) style = { ...style, dim: true };
    else if (code === 3) style = { ...style, italic: true };
    else if (code === 4) style = { ...style, underline: true };
    else if (code === 22) style = { ...style, bold: false, dim: false };
    else if (code === 23) style = { ...style, italic: false };
    else if (code === 24) style = { ...style, underline: false };
    else if (code >= 30 && code <= 37) style = { ...style, colour: COLOURS[code - 30]! };
    else if (code >= 90 && code <= 97) style = { ...style, colour: `bright-${COLOURS[code - 90]}` };
    else if (code === 39) style = { ...style, colour: "" };
  }
  return style;
}

const looksOf = ({ colour, ...rest }: Style): string[] => [
  ...(colour ? [colour] : []),
  ...Object.entries(rest).flatMap(([name, on]) => (on ? [name] : [])),
];

export function ansiPieces(text: string): Piece[] {
  if (!text.includes("\u001b")) return [{ text, looks: [] }];
  const pieces: Piece[] = [];
  let style = PLAIN;
  let from = 0;
  const add = (to: number) => {
    if (to > from) pieces.push({ text: text.slice(from, to), looks: looksOf(style) });
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  add(text.length);
  return pieces;
}

/** Without any escapes. */
export function ansiText(text: string): string {
  return ansiPieces(text)
    .map((piece) => piece.text)
    .join("");
}
