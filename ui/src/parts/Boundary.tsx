import { Component, type ReactNode } from "react";

interface Props {
  children: ReactNode;
  fallback: (error: unknown) => ReactNode;
  /** Where this is: elsewhere it is tried again. */
  at?: string;
}

interface State {
  error: unknown;
  at: string | undefined;
}

/** Catches what goes wrong while something is drawn, so that the rest of the page stays. */
export class Boundary extends Component<Props, State> {
  override state: State = { error: null, at: this.props.at };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  static getDerivedStateFromProps({ at }: Props, state: State): Partial<State> | null {
    return at === state.at ? null : { at, error: null };
  }

  override render() {
    return this.state.error === null ? this.props.children : this.props.fallback(this.state.error);
  }
}
