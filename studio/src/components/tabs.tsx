import type { JSX } from "preact";
import { Link } from "./link";

export interface Tab {
  id: string;
  label: string;
  href: string;
}

/** Parts of a page that have addresses of their own. */
export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((each) => (
        <Link key={each.id} href={each.href} {...(each.id === current ? { "aria-current": "page" } : {})}>
          {each.label}
        </Link>
      ))}
    </nav>
  );
}
