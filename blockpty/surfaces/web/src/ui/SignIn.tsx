import { redeem, refusal } from "../api/auth.ts";
import { Mark } from "./Shell.tsx";

export function SignIn() {
  const submit = (event: Event) => {
    event.preventDefault();
    const given = String(new FormData(event.target as HTMLFormElement).get("code") ?? "").trim();
    void redeem(given.includes("#code=") ? given.split("#code=")[1] : given);
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
        {refusal.value && <p role="alert" class="refusal">{refusal.value}</p>}
        <button class="button primary">Sign in</button>
      </form>
    </main>
  );
}
