import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "./link";

export interface Tab {
  id: string;
  label: string;
  href: string;
}

interface Props {
  tabs: readonly Tab[];
  current: string;
  label: string;
  style?: "tabs" | "navigation";
}

/** Places with addresses of their own, side by side. On a narrow screen the current one is scrolled into view. */
export function Tabs({ tabs, current, label, style = "tabs" }: Props): JSX.Element {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    element.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav ref={element} class={style} aria-label={label}>
      {tabs.map((each) => (
        <Link key={each.id} href={each.href} {...(each.id === current ? { "aria-current": "page" } : {})}>
          {each.label}
        </Link>
      ))}
    </nav>
  );
}
