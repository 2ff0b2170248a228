/** A small part of Markdown as a tree, from which only plain elements are made. Pure. */
export type Inline =
  | { kind: "text" | "code" | "bold" | "italic"; text: string }
  | { kind: "link"; text: string; href: string };

export type Block =
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "paragraph"; content: Inline[] }
  | { kind: "list"; isNumbered: boolean; items: Inline[][] }
  | { kind: "code"; text: string };

const FENCE = /^```/;
const HEADING = /^(#{1,4})\s+(.*)$/;
const BULLET = /^\s*[-*+]\s+(.*)$/;
const NUMBER = /^\s*\d+[.)]\s+(.*)$/;
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\(([^)\s]+)\)|(https?:\/\/[^\s<>")\]]+)/g;

export function parseMarkdown(source: string): Block[] {
  const blocks: Block[] = [];
  const lines = source.replaceAll("\r\n", "\n").split("\n");
  let paragraph: string[] = [];
  const close = () => {
    if (paragraph.length) blocks.push({ kind: "paragraph", content: parseInline(paragraph.join("\n")) });
    paragraph = [];
  };
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n] ?? "";
    const heading = HEADING.exec(line);
    const item = BULLET.exec(line) ?? NUMBER.exec(line);
    if (FENCE.test(line)) {
      close();
      const end = lines.findIndex((each, at) => at > n && FENCE.test(each));
      const last = end < 0 ? lines.length : end;
      blocks.push({ kind: "code", text: lines.slice(n + 1, last).join("\n") });
      n = last;
    } else if (heading) {
      close();
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, content: parseInline(heading[2] ?? "") });
    } else if (item) {
      close();
      const isNumbered = !BULLET.test(line);
      const before = blocks.at(-1);
      const content = parseInline(item[1] ?? "");
      const isNext = before?.kind === "list" && before.isNumbered === isNumbered && lines[n - 1]?.trim() !== "";
      if (isNext) before.items.push(content);
      else blocks.push({ kind: "list", isNumbered, items: [content] });
    } else if (line.trim() === "") close();
    else paragraph.push(line);
  }
  close();
  return blocks;
}

export function parseInline(text: string): Inline[] {
  const found: Inline[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, bold, italic, label, target, address] = match;
    if (match.index > at) found.push({ kind: "text", text: text.slice(at, match.index) });
    at = match.index + whole.length;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (bold !== undefined) found.push({ kind: "bold", text: bold });
    else if (italic !== undefined) found.push({ kind: "italic", text: italic });
    else if (address !== undefined) found.push({ kind: "link", text: address, href: address });
    else if (label !== undefined && target !== undefined && isWebAddress(target)) found.push({ kind: "link", text: label, href: target });
    else found.push({ kind: "text", text: whole });
  }
  if (at < text.length) found.push({ kind: "text", text: text.slice(at) });
  return found;
}

/** Only these may be followed: others, such as javascript:, could run something. */
function isWebAddress(target: string): boolean {
  return /^https?:\/\//i.test(target);
}
