/** Tags and properties: shown, and edited where they stand. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

interface Props {
  title: string;
  values: Readonly<Record<string, unknown>>;
  /** Absent for who may not change them. */
  onAdd?: ((name: string, value: string) => Promise<boolean>) | undefined;
  /** Absent for labels that cannot be removed. */
  onRemove?: ((name: string) => Promise<boolean>) | undefined;
}

export function Labels({ title, values, onAdd, onRemove }: Props): JSX.Element {
  const [isAdding, setAdding] = useState(false);
  const names = Object.keys(values).sort();
  return (
    <section class="labels" aria-label={title}>
      <h3>{title}</h3>
      <ul>
        {names.map((name) => (
          <li key={name} class="label">
            <span class="label-name">{name}</span>
            <span class="label-value">{String(values[name] ?? "")}</span>
            {onRemove && (
              <button type="button" class="plain" aria-label={`Remove ${name}`} onClick={() => void onRemove(name)}>×</button>
            )}
          </li>
        ))}
        {!names.length && !isAdding && <li class="muted">none</li>}
        {onAdd && !isAdding && (
          <li>
            <button type="button" class="plain small" aria-label={`Add to ${title.toLowerCase()}`} onClick={() => setAdding(true)}>
              + Add
            </button>
          </li>
        )}
      </ul>
      {onAdd && isAdding && <LabelForm onAdd={onAdd} onClose={() => setAdding(false)} />}
    </section>
  );
}

function LabelForm({ onAdd, onClose }: { onAdd: NonNullable<Props["onAdd"]>; onClose: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  return (
    <form
      class="row"
      onSubmit={async (event) => {
        event.preventDefault();
        if (name.trim() && (await onAdd(name.trim(), value))) onClose();
      }}
    >
      <input aria-label="Name" placeholder="name" required value={name} onInput={(event) => setName(event.currentTarget.value)} />
      <input aria-label="Value" placeholder="value" value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      <button type="submit" class="primary">Add</button>
      <button type="button" onClick={onClose}>Cancel</button>
    </form>
  );
}
