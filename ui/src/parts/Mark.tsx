/** Rival's mark. */
export function Mark({ size }: { size: number }) {
  return (
    <svg className="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="mark-ground" />
      <path d="M10 24V8h7a5 5 0 0 1 0 10h-7m6 0 6 6" className="mark-line" />
      <circle cx="23.5" cy="9" r="2.5" className="mark-dot" />
    </svg>
  );
}
