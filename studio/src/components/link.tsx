import type { AnchorHTMLAttributes, ComponentChildren, JSX } from "preact";
import { navigate } from "../address";

type Props = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href" | "role" | "onClick"> & {
  href: string;
  children?: ComponentChildren;
  onClick?: (event: MouseEvent) => void;
};

/** A link within the studio: no page is loaded, and the browser's own keys (new tab, copy) work as everywhere. */
export function Link({ href, onClick, ...others }: Props): JSX.Element {
  return (
    <a
      {...others}
      href={href}
      onClick={(event) => {
        onClick?.(event);
        const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
        if (event.defaultPrevented || !isPlain) return;
        event.preventDefault();
        navigate(href);
      }}
    />
  );
}
