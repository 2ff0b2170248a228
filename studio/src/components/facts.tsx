import type { ComponentChildren, JSX } from "preact";

export type Fact = readonly [string, ComponentChildren];

/** Names and what they are, one below the other. Facts without a value are left out. */
export function Facts({ facts }: { facts: readonly Fact[] }): JSX.Element {
  const shown = facts.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return (
    <dl class="facts">
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
