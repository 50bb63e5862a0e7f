/* Views.tsx: the saved views, and how one comes to be. */
import { useId, useState, type FormEvent } from "react";
import { Link, useLocation } from "wouter";
import { Dialog } from "../parts/Dialog";
import { Icon } from "../parts/Icon";
import { isFiltered, writeFilter, type RunFilter } from "./filters";
import { removeView, saveView, useViews } from "./views";

export function Views({ filter }: { filter: RunFilter }) {
  const views = useViews();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState(false);
  const field = useId();
  const isSaved = views.some((view) => view.name === filter.view);

  function save(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    if (!name) return;
    const query = writeFilter({ ...filter, view: name }).toString();
    saveView({ name, query });
    setAsking(false);
    navigate(`/runs?${query}`, { replace: true });
  }
  if (views.length === 0 && !isFiltered(filter)) return null;
  return (
    <nav className="views" aria-label="Saved views">
      {views.map((view) => (
        <span key={view.name} className="view">
          <Link href={`/runs?${view.query}`} aria-current={view.name === filter.view ? "true" : undefined}>
            {view.name}
          </Link>
          {view.name === filter.view && (
            <button
              className="button quiet small icon-only"
              aria-label={`Remove the view ${view.name}`}
              onClick={() => removeView(view.name)}
            >
              <Icon name="close" size={11} />
            </button>
          )}
        </span>
      ))}
      {isFiltered(filter) && !isSaved && (
        <button className="button quiet small" onClick={() => setAsking(true)}>
          Save this view…
        </button>
      )}
      <Dialog open={asking} onClose={() => setAsking(false)} title="Save this view">
        <form onSubmit={save}>
          <div className="field">
            <label htmlFor={field}>Name</label>
            <input id={field} name="name" required autoFocus defaultValue={filter.view} />
            <span className="hint">It is listed in this browser. Its address can be sent to anybody.</span>
          </div>
          <div className="actions">
            <button type="button" className="button" onClick={() => setAsking(false)}>
              Close
            </button>
            <button className="button primary">Save</button>
          </div>
        </form>
      </Dialog>
    </nav>
  );
}
