import type { JSX } from "preact";
import { type Block, type Inline, parseMarkdown } from "../markdown";

/** A description with a little Markdown. Everything becomes plain elements; HTML in it stays text. */
export function Markdown({ source }: { source: string }): JSX.Element {
  return <div class="markdown">{parseMarkdown(source).map((block, n) => <BlockElement key={n} block={block} />)}</div>;
}

function BlockElement({ block }: { block: Block }): JSX.Element {
  if (block.kind === "code") return <pre tabIndex={0}><code>{block.text}</code></pre>;
  if (block.kind === "list") {
    const items = block.items.map((item, n) => <li key={n}><Inlines content={item} /></li>);
    return block.isNumbered ? <ol>{items}</ol> : <ul>{items}</ul>;
  }
  const content = <Inlines content={block.content} />;
  if (block.kind === "paragraph") return <p>{content}</p>;
  return block.level <= 2 ? <h3>{content}</h3> : <h4>{content}</h4>;
}

function Inlines({ content }: { content: readonly Inline[] }): JSX.Element {
  return (
    <>
      {content.map((each, n) => {
        if (each.kind === "link") return <a key={n} href={each.href} target="_blank" rel="noopener noreferrer nofollow">{each.text}</a>;
        if (each.kind === "code") return <code key={n}>{each.text}</code>;
        if (each.kind === "bold") return <strong key={n}>{each.text}</strong>;
        return each.kind === "italic" ? <em key={n}>{each.text}</em> : each.text;
      })}
    </>
  );
}
