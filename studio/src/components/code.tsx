/** Texts to take along: code, commands, addresses. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

/** Puts a text into the clipboard. Pages without TLS have no clipboard of their own: there a selection is copied. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    // Inside an open dialog, because everything else cannot be selected while it is open.
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }): JSX.Element {
  const [said, setSaid] = useState("");
  return (
    <button
      type="button"
      class="copy"
      aria-label={said || label}
      onClick={async () => {
        setSaid((await copyText(text)) ? "Copied" : "Press Ctrl+C");
        setTimeout(() => setSaid(""), 2000);
      }}
    >
      {said || "Copy"}
    </button>
  );
}

/** Code or a command with a button that copies it. */
export function CodeBlock({ text, label }: { text: string; label: string }): JSX.Element {
  return (
    <figure class="code">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} label={`Copy: ${label}`} />
      </figcaption>
      <pre tabIndex={0} aria-label={label}><code>{text}</code></pre>
    </figure>
  );
}
