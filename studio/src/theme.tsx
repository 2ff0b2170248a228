/** Light or dark: as the system says, or as the user chose. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

const KEY = "trainmaster.theme";
const CHOICES = ["auto", "light", "dark"] as const;
type Choice = (typeof CHOICES)[number];
const LABELS: Readonly<Record<Choice, string>> = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
const SIGNS: Readonly<Record<Choice, string>> = { auto: "◐", light: "☀", dark: "☾" };

function readChoice(): Choice {
  try {
    const kept = localStorage.getItem(KEY);
    return CHOICES.find((each) => each === kept) ?? "auto";
  } catch {
    return "auto";
  }
}

/** Before the first paint. */
export function applyTheme(choice: Choice = readChoice()): void {
  if (choice === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice;
  window.dispatchEvent(new Event("themechange"));
}

/** Calls `handle` when the colours change, until the returned function is called. Canvases have to be drawn again. */
export function onThemeChange(handle: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  window.addEventListener("themechange", handle);
  system.addEventListener("change", handle);
  return () => {
    window.removeEventListener("themechange", handle);
    system.removeEventListener("change", handle);
  };
}

/** The value of a colour variable of theme.css now, for canvases: `colorOf("--series-1")`. */
export function colorOf(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

export function ThemeButton(): JSX.Element {
  const [choice, setChoice] = useState(readChoice);
  return (
    <button
      type="button"
      class="plain"
      aria-label={LABELS[choice]}
      title={LABELS[choice]}
      onClick={() => {
        const next = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "auto";
        try {
          localStorage.setItem(KEY, next);
        } catch {
          // A browser that keeps nothing: the choice holds for this page.
        }
        setChoice(next);
        applyTheme(next);
      }}
    >
      {SIGNS[choice]}
    </button>
  );
}
