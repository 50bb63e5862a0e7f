/* navigation.ts: how this page was come to. Who comes back wants to find it as it was. */

let last: "first" | "onward" | "back" = "first";

// wouter tells of pushState by an event of that name.
window.addEventListener("popstate", () => (last = "back"));
for (const name of ["pushState", "replaceState"]) window.addEventListener(name, () => (last = "onward"));

/** By the browser's Back, or Forward. */
export function cameBack(): boolean {
  return last === "back";
}
