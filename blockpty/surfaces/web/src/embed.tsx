import "./csp.ts";
import "@xterm/xterm/css/xterm.css";
import "./ui/theme.css";
import { render } from "preact";
import { BASE } from "./base.ts";
import { useBorrowed } from "./api/auth.ts";
import { Embedded } from "./ui/Embedded.tsx";

/**
 * One terminal in a frame of another page, to look at. That page sends the token as a message; only pages of origins
 * that the server allows can have this one in a frame, so the page around it may send one.
 */
const ASKING = "blockpty.ready";
const GIVING = "blockpty.token";

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.type !== GIVING || typeof data.token !== "string") return;
  useBorrowed(data.token);
});
const [, , id = "", show = ""] = location.pathname.slice(BASE.length).split("/");
render(<Embedded id={decodeURIComponent(id)} show={show} />, document.getElementById("page")!);
if (parent !== window) parent.postMessage({ type: ASKING }, "*");
