import { Link } from "wouter";
import { Empty } from "../parts/Empty";
import { useTitle } from "./title";

export function NotFound({ what = "This page" }: { what?: string }) {
  useTitle("Not found");
  return (
    <Empty icon="search" title={`${what} does not exist`} heading="h1">
      <p>The address may be mistyped, or what it named has been removed by retention.</p>
      <p>
        <Link href="/runs">All runs</Link> · <Link href="/workflows">All workflows</Link>
      </p>
    </Empty>
  );
}
