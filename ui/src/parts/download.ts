/** Save a text as a file. */
export function download(name: string, text: string, type = "text/plain"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replaceAll(":", "_");
  link.click();
  URL.revokeObjectURL(link.href);
}
