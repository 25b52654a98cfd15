import { bindings } from "../keys.ts";

export function Help({ close }: { close: () => void }) {
  return (
    <div class="overlay" onClick={close}>
      <section role="dialog" aria-label="Keys" onClick={(event) => event.stopPropagation()}>
        <h2>Keys</h2>
        <dl>
          {bindings.filter(({ keys }) => keys.length > 0).map(({ id, keys, words }) => (
            <div key={id}>
              <dt>
                <kbd>{keys[0].replaceAll("+", " ")}</kbd>
              </dt>
              <dd>{words}</dd>
            </div>
          ))}
        </dl>
      </section>
    </div>
  );
}
