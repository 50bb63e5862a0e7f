/** Shown only after a moment (by CSS), so that what is quick does not flicker. */
export function Loading({ what }: { what: string }) {
  return (
    <div className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      Loading {what}…
    </div>
  );
}
