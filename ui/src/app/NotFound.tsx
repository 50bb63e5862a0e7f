import type { ReactNode } from "react";
import { Link } from "wouter";
import { Empty } from "../parts/Empty";
import { useTitle } from "./title";

/** `why`: what may have become of it. */
export function NotFound({
  what = "This page",
  why = "The address may be mistyped.",
}: {
  what?: string;
  why?: string;
}) {
  return <Nothing title={`${what} does not exist`}>{why}</Nothing>;
}

/** A run that is there, and that no browser can ask for (paths.ts). */
export function Folded({ runId }: { runId: string }) {
  return (
    <Nothing title={`The run ${runId} cannot be shown here`}>
      A browser takes its id for a step in a path, and cannot ask the server for it. <code>rival show {runId}</code>{" "}
      can.
    </Nothing>
  );
}

function Nothing({ title, children }: { title: string; children: ReactNode }) {
  useTitle("Not found");
  return (
    <Empty icon="search" title={title} heading="h1">
      <p>{children}</p>
      <p>
        <Link href="/runs">All runs</Link> · <Link href="/workflows">All workflows</Link>
      </p>
    </Empty>
  );
}
