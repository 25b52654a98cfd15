import { Component, type FunctionComponent, h } from "preact";

/** Have a component drawn anew only when one of its properties is another one, or a signal that it reads has changed. */
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
