import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props {
  /** What is edited: "name", "description". */
  what: string;
  text: string;
  isLong?: boolean;
  /** Absent for who may not change it. Returns whether it was saved. */
  onSave?: ((text: string) => Promise<boolean>) | undefined;
  children: ComponentChildren;
}

/** A text that is edited where it stands. Escape leaves it as it was. */
export function Editable({ what, text, isLong = false, onSave, children }: Props): JSX.Element {
  const [draft, setDraft] = useState<string | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const isEditing = draft !== undefined;
  useEffect(() => {
    if (isEditing) field.current?.focus();
  }, [isEditing]);
  if (!onSave) return <>{children}</>;
  if (draft === undefined) {
    return (
      <div class="editable">
        {children}
        <button type="button" class="plain small" aria-label={`Edit the ${what}`} title={`Edit the ${what}`} onClick={() => setDraft(text)}>
          Edit
        </button>
      </div>
    );
  }
  const common = {
    ref: field,
    value: draft,
    "aria-label": `The ${what}`,
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Escape") setDraft(undefined);
    },
  };
  return (
    <form
      class="editing"
      onSubmit={async (event) => {
        event.preventDefault();
        setBusy(true);
        const isSaved = await onSave(draft);
        setBusy(false);
        if (isSaved) setDraft(undefined);
      }}
    >
      {isLong ? (
        <textarea {...common} rows={5} onInput={(event) => setDraft(event.currentTarget.value)} />
      ) : (
        <input {...common} onInput={(event) => setDraft(event.currentTarget.value)} />
      )}
      <div class="row">
        <button type="submit" class="primary" disabled={isBusy}>Save</button>
        <button type="button" onClick={() => setDraft(undefined)}>Leave as it was</button>
        {isLong && <span class="muted small">Markdown: headings, lists, **bold**, *italic*, `code`, links</span>}
      </div>
    </form>
  );
}
