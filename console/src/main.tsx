// Where the page begins. Modules that are loaded first only define things: the first act is to take the one-time link out
// of the address.
import { render } from "preact";
import { start, takeLink } from "./api/session";
import { App } from "./app";
import { startRouter } from "./router";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/parts.css";
import "./ui/shell.css";

const code = takeLink();
startRouter();
void start(code);
const root = document.getElementById("app");
if (root) render(<App />, root);
