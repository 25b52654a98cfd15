import "./csp.ts";
import "@xterm/xterm/css/xterm.css";
import "./ui/theme.css";
import { render } from "preact";
import { signIn } from "./api/auth.ts";
import { listen } from "./keys.ts";
import { Shell } from "./ui/Shell.tsx";

// The code of the address is used and removed before anything is drawn.
await signIn();
listen();
render(<Shell />, document.getElementById("page")!);
