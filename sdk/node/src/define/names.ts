/**
 * names.ts: what the actors of a workflow are called. On the wire functions have these names.
 *
 * `<workflow>_<alias>` at the top level; below a supervisor `<workflow>__loop__<alias>__run__<alias>` and the like. Names
 * and aliases contain no `__`, so no two nodes of one workflow share a name.
 */
export class Names {
  constructor(
    private readonly workflow: string,
    private readonly within: readonly string[] = [],
  ) {}

  of(alias: string): string {
    return this.within.length === 0 ? `${this.workflow}_${alias}` : [this.workflow, ...this.within, alias].join("__");
  }

  /** `<workflow>_coordinator`. */
  coordinator(): string {
    return `${this.workflow}_coordinator`;
  }

  /** The names in a supervisor of that alias: `below("loop", "each", "run")`. */
  below(...parts: string[]): Names {
    return new Names(this.workflow, [...this.within, ...parts]);
  }

  nested(workflow: string): Names {
    return new Names(workflow);
  }
}

/** The name of a function that belongs to an actor: its handler, a condition, a field of its parameters. */
export function partOf(actor: string, part: string): string {
  return `${actor}__${part}`;
}
