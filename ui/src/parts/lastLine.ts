/** The last line that says something: where tracebacks, compilers and shells tell what went wrong. */
export function lastLine(text: string): string {
  const end = text.trimEnd();
  return end.slice(end.lastIndexOf("\n") + 1).trim();
}
