import { bindings, pressed } from "../keys.ts";
import { singleKeys, switchSingleKeys } from "../store/settings.ts";

export function Help({ close }: { close: () => void }) {
  return (
    <div class="overlay" onClick={close}>
      <section role="dialog" aria-label="Keys" onClick={(event) => event.stopPropagation()}>
        <h2>Keys</h2>
        <dl>
          {bindings.filter(({ keys }) => keys.length > 0).map(({ id, keys, words }) => (
            <div key={id}>
              <dt>
                <kbd>{pressed(keys[0])}</kbd>
              </dt>
              <dd>{words}</dd>
            </div>
          ))}
        </dl>
        <label class="check">
          <input type="checkbox" checked={singleKeys.value} onChange={switchSingleKeys} /> Keys without Ctrl do something
        </label>
      </section>
    </div>
  );
}
