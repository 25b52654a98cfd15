import { Component, type FunctionComponent, h } from "preact";

/** Render a component again only when a property or a signal that it reads has changed. */
export function memo<P extends object>(inner: FunctionComponent<P>) {
  return class extends Component<P> {
    shouldComponentUpdate(next: P): boolean {
      return (Object.keys(next) as (keyof P)[]).some((name) => next[name] !== this.props[name]);
    }

    render() {
      return h(inner, this.props);
    }
  };
}
