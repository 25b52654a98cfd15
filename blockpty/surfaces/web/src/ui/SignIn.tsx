import { redeem, refusal } from "../api/auth.ts";
import { Mark } from "./Shell.tsx";

export function SignIn() {
  const submit = (event: Event) => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    const given = String(fields.get("code") ?? "").trim();
    void redeem(given.includes("#code=") ? given.split("#code=")[1] : given, fields.has("stays"));
  };
  return (
    <main class="sheet">
      <form onSubmit={submit}>
        <Mark />
        <h1>Sign in</h1>
        <p>
          Run <code>blockpty view --web</code> on the machine of the server. It prints an address that signs this browser
          in, once, within a minute.
        </p>
        <label>
          Address or code
          <input name="code" autocomplete="off" spellcheck={false} autofocus required />
        </label>
        <label class="check">
          <input name="stays" type="checkbox" /> Stay signed in, also after this tab is closed
        </label>
        {refusal.value && <p role="alert" class="refusal">{refusal.value}</p>}
        <button class="button primary">Sign in</button>
      </form>
    </main>
  );
}
