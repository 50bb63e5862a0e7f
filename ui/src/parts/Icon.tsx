/* Icon.tsx: the few icons there are, as lines on a 16×16 grid, in the colour of the text. They say
 * nothing to a screen reader: what they mean stands beside them, or is their button's label. */

const ICONS = {
  workflow: "M2 3h4v4H2zM10 9h4v4h-4zM6 5h3.5a2 2 0 0 1 2 2v2",
  list: "M5.5 4h8.5M5.5 8h8.5M5.5 12h8.5M2 4h.5M2 8h.5M2 12h.5",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.5M7 6.5h.5M10 6.5h.5M12 6.5h.2M5 9.5h6",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7",
  offline:
    "M2 2l12 12M1.5 6.5A9.5 9.5 0 0 1 5 4.3M7.5 3.6a9.5 9.5 0 0 1 7 2.9M4 9.2a6 6 0 0 1 3-1.6M10 8a6 6 0 0 1 2 1.2M8 12.5h.1",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14",
  close: "M4 4l8 8M12 4l-8 8",
  chevron: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  copy: "M6 6h7.5v7.5H6zM3.5 10H2.5V2.5H10v1",
  play: "M4.5 2.5v11l9-5.5z",
  stop: "M3.5 3.5h9v9h-9z",
  bell: "M8 2a4 4 0 0 0-4 4c0 4-1.5 5-1.5 5h11S12 10 12 6a4 4 0 0 0-4-4M6.7 13.5a1.5 1.5 0 0 0 2.6 0",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 4.5V8l2.5 1.5",
  retry: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 2v3h-3",
  file: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3",
  question: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M6.3 6.3A1.8 1.8 0 1 1 8 8.5v.7M8 11.3h.1",
  alert: "M8 2.5 14.5 13.5H1.5zM8 6.5v3.2M8 11.7h.1",
  plus: "M8 3v10M3 8h10",
  up: "M8 13V3M4 7l4-4 4 4",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}
