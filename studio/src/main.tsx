import { render } from "preact";
import { App } from "./app";
import "./styles/index.css";
import { applyTheme } from "./theme";

applyTheme();
const place = document.getElementById("studio");
if (place) render(<App />, place);
