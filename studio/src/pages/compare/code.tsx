import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { setParameters, useParameter } from "../../address";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { FileDifference, ValueDifference } from "../../api/types";
import { Empty, ErrorBox, Loading } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { type DiffLine, type Hunk, pairLines, parseUnified } from "./diff";
import { type ComparedRun, nameRun } from "./rows";

interface Props {
  workspace: string;
  runs: readonly ComparedRun[];
  baseline: number;
}

/** What differs in code and packages of two of the runs. */
export function CodeDifferences({ workspace, runs, baseline }: Props): JSX.Element {
  const ids = runs.map((each) => each.record.id);
  const [leftWish] = useParameter("left", ids[baseline] ?? "");
  const left = ids.includes(leftWish) ? leftWish : (ids[baseline] ?? "");
  const [rightWish] = useParameter("right", ids.find((each) => each !== left) ?? "");
  const right = ids.includes(rightWish) && rightWish !== left ? rightWish : (ids.find((each) => each !== left) ?? "");
  const [style, setStyle] = useParameter("diff", "unified");
  const found = useResource(
    async (signal) => (left && right ? call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/differences/{other}", { workspace, run_id: left, other: right }, { signal }) : undefined),
    [workspace, left, right],
  );
  if (ids.length < 2) return <Empty title="Add another run to compare its code." />;
  const differences = found.value && found.value.left === left && found.value.right === right ? found.value : undefined;
  return (
    <>
      <div class="row">
        <RunChoice label="From" runs={runs} value={left} onChange={(id) => setParameters({ left: id, ...(id === right ? { right: left } : {}) })} />
        <button type="button" title="Swap both runs" aria-label="Swap both runs" onClick={() => setParameters({ left: right, right: left })}>⇄</button>
        <RunChoice label="to" runs={runs.filter((each) => each.record.id !== left)} value={right} onChange={(id) => setParameters({ right: id })} />
        <span class="spacer" />
        <label class="row">
          <span class="muted">Show lines</span>
          <select value={style} onChange={(event) => setStyle(event.currentTarget.value)}>
            <option value="unified">one below the other</option>
            <option value="split">side by side</option>
          </select>
        </label>
      </div>
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!differences && !found.error && <Loading />}
      {differences && (
        <>
          {differences.notices.map((each) => <p key={each} class="muted">{each}</p>)}
          <Packages packages={differences.packages} />
          {differences.machine.length > 0 && <Values title="Machine" values={differences.machine} />}
          {differences.environment.length > 0 && <Values title="Definition of the environment" values={differences.environment} />}
          <section aria-labelledby="files-title" class="stack">
            <h2 id="files-title">{differences.files.length ? `${differences.files.length} ${differences.files.length === 1 ? "file differs" : "files differ"}` : "The code is the same"}</h2>
            {differences.files.map((file, index) => <FileView key={file.path} file={file} isSplit={style === "split"} isOpen={index < 10} />)}
          </section>
        </>
      )}
    </>
  );
}

function RunChoice({ label, runs, value, onChange }: { label: string; runs: readonly ComparedRun[]; value: string; onChange: (id: string) => void }): JSX.Element {
  return (
    <label class="row compare-choice">
      <span class="muted">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {runs.map(({ record }) => <option key={record.id} value={record.id}>{nameRun(record)}</option>)}
      </select>
    </label>
  );
}

function Packages({ packages }: { packages: readonly ValueDifference[] }): JSX.Element {
  const kinds = packages.map((each) => (each.left === null ? "added" : each.right === null ? "removed" : "changed"));
  const count = (kind: string) => kinds.filter((each) => each === kind).length;
  const summary = (["added", "removed", "changed"] as const).filter((each) => count(each)).map((each) => `${count(each)} ${each}`).join(", ");
  if (!packages.length) return <p class="muted">No difference is known between their packages.</p>;
  return (
    <section class="card" aria-labelledby="packages-title">
      <div class="row"><h2 id="packages-title">Packages</h2><span class="muted">{summary}</span></div>
      <Listing label="Packages that differ" class="compare-packages" columns={["Package", "Change", "From", "To"]}>
        {packages.map((each, index) => (
          <tr key={each.name}>
            <th scope="row">{each.name}</th>
            <td><span class={`compare-change compare-${kinds[index]}`}>{kinds[index]}</span></td>
            <td>{each.left ?? <span class="muted">none</span>}</td>
            <td>{each.right ?? <span class="muted">none</span>}</td>
          </tr>
        ))}
      </Listing>
    </section>
  );
}

function Values({ title, values }: { title: string; values: readonly ValueDifference[] }): JSX.Element {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <Listing label={`${title}: values that differ`} class="compare-packages" columns={["Setting", "From", "To"]}>
        {values.map((each) => (
          <tr key={each.name}>
            <th scope="row">{each.name}</th>
            <td class="compare-text">{each.left ?? <span class="muted">none</span>}</td>
            <td class="compare-text">{each.right ?? <span class="muted">none</span>}</td>
          </tr>
        ))}
      </Listing>
    </section>
  );
}

function FileView({ file, isSplit, isOpen }: { file: FileDifference; isSplit: boolean; isOpen: boolean }): JSX.Element {
  const [isShown, setShown] = useState(isOpen);
  const hunks = useMemo(() => (isShown ? parseUnified(file.diff) : []), [file.diff, isShown]);
  return (
    <details class="card compare-file" open={isOpen} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span class="mono compare-path">{file.path}</span> <span class={`compare-change compare-${file.kind}`}>{file.kind}</span>{" "}
        {file.added > 0 && <span class="compare-plus">+{file.added}</span>} {file.removed > 0 && <span class="compare-minus">−{file.removed}</span>}
      </summary>
      {file.notice && <p class="muted">{file.notice}</p>}
      {hunks.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label={`Lines of ${file.path}`}>
          <table class={isSplit ? "compare-lines compare-split" : "compare-lines"}>
            {isSplit && <colgroup><col class="compare-number" /><col /><col class="compare-number" /><col /></colgroup>}
            {hunks.map((hunk, index) => <HunkView key={index} hunk={hunk} isSplit={isSplit} />)}
          </table>
        </div>
      )}
    </details>
  );
}

const SIGNS: Readonly<Record<DiffLine["kind"], string>> = { same: " ", added: "+", removed: "−" };

function HunkView({ hunk, isSplit }: { hunk: Hunk; isSplit: boolean }): JSX.Element {
  return (
    <tbody>
      {hunk.skipped > 0 && <tr class="compare-skipped"><td colSpan={isSplit ? 4 : 3}>{hunk.skipped} equal {hunk.skipped === 1 ? "line" : "lines"}</td></tr>}
      {isSplit
        ? pairLines(hunk.lines).map((pair, index) => (
            <tr key={index}>
              <Side line={pair.left} number={pair.left?.left} />
              <Side line={pair.right} number={pair.right?.right} />
            </tr>
          ))
        : hunk.lines.map((line, index) => (
            <tr key={index} class={`compare-line-${line.kind}`}>
              <td class="compare-number">{line.left ?? ""}</td>
              <td class="compare-number">{line.right ?? ""}</td>
              <td class="compare-code"><Sign kind={line.kind} />{line.text}</td>
            </tr>
          ))}
    </tbody>
  );
}

function Side({ line, number }: { line: DiffLine | undefined; number: number | undefined }): JSX.Element {
  const tone = line ? `compare-line-${line.kind}` : "compare-line-none";
  return (
    <>
      <td class={`compare-number ${tone}`}>{number ?? ""}</td>
      <td class={`compare-code ${tone}`}>{line && <Sign kind={line.kind} />}{line?.text ?? ""}</td>
    </>
  );
}

function Sign({ kind }: { kind: DiffLine["kind"] }): JSX.Element {
  return (
    <>
      <span class="compare-sign" aria-hidden="true">{SIGNS[kind]}</span>
      {kind !== "same" && <span class="hidden-label">{kind}: </span>}
    </>
  );
}
