import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatAddress } from "../../address";
import type { SweepView, TrialView } from "../../api/types";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { Duration } from "../../components/time";
import { findWindow, useScroll } from "../../components/window";
import { formatDuration, formatNumber, toNumber } from "../../text/numbers";
import { Sparkline } from "./sparkline";
import { flattenParameters, formatParameter, labelOf, listParameters } from "./trials";

/** Longer tables scroll in a frame of their own, and only the rows in view are drawn. */
const LONG = 50;
const ROW = 33;

interface Props {
  workspace: string;
  view: SweepView;
  /** In the order of the table. */
  trials: readonly TrialView[];
  bestNumber: number | undefined;
  order: string;
  onOrder: (order: string) => void;
  selected: ReadonlySet<string>;
  onSelect: (selected: ReadonlySet<string>) => void;
  highlighted: number | undefined;
  onHighlight: (number: number | undefined) => void;
}

/** The trials, best first unless another order is chosen. */
export function TrialTable(props: Props): JSX.Element {
  const { workspace, view, trials, order, onOrder, selected, onSelect } = props;
  const frame = useRef<HTMLDivElement>(null);
  const size = useScroll(frame);
  const [rowHeight, setRowHeight] = useState(ROW);
  const isLong = trials.length > LONG;
  const { first, last, above, below } = isLong
    ? findWindow(size.scroll, size.height, trials.length, rowHeight)
    : { first: 0, last: trials.length, above: 0, below: 0 };
  const parameters = useMemo(() => listParameters(view), [view.trials]);
  const body = useRef<HTMLTableSectionElement>(null);
  const toggle = (runId: string) => {
    const next = new Set(selected);
    if (!next.delete(runId)) next.add(runId);
    onSelect(next);
  };
  const rows = useMemo(
    () =>
      trials.slice(first, last).map((trial, index) => (
        <TrialRow
          key={trial.number}
          {...{ trial, workspace, parameters }}
          position={first + index + 2}
          isBest={trial.number === props.bestNumber}
          isSelected={selected.has(trial.run_id)}
          onToggle={() => toggle(trial.run_id)}
          onHighlight={props.onHighlight}
        />
      )),
    [trials, first, last, selected, parameters, props.bestNumber],
  );
  useLayoutEffect(() => {
    const row = body.current?.querySelector("[data-trial]");
    const height = row?.getBoundingClientRect().height;
    if (height && isLong) setRowHeight(height);
    // Columns only grow, so that they do not change their widths while somebody scrolls.
    for (const head of isLong ? (frame.current?.querySelectorAll("th") ?? []) : []) head.style.minWidth = `${head.offsetWidth}px`;
  }, [rows, isLong]);
  // Pointing at another line of the chart renders no row again.
  useEffect(() => {
    const row = body.current?.querySelector(`[data-trial="${props.highlighted ?? ""}"]`);
    row?.classList.add("highlighted");
    return () => row?.classList.remove("highlighted");
  }, [props.highlighted, rows]);
  const head = (name: string, label: string, isNumber = false) => <SortedHead key={name} {...{ name, label, isNumber, order, onOrder }} />;
  return (
    <div ref={frame} class={isLong ? "scroll sweep-frame" : "scroll"} tabIndex={0} role="group" aria-label="Trials">
      <table class="sweep-trials" aria-rowcount={trials.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col"><span class="hidden-label">Select</span></th>
            {head("trial", "Trial")}
            {head("status", "State")}
            {head("best", view.metric, true)}
            {head("last", "Last value", true)}
            <th scope="col">Course</th>
            {parameters.map((each) => head(`parameter:${each}`, labelOf(each)))}
            {head("reports", "Reports", true)}
            <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {above > 0 && <Filler height={above} />}
          {rows}
          {below > 0 && <Filler height={below} />}
        </tbody>
      </table>
    </div>
  );
}

function Filler({ height }: { height: number }): JSX.Element {
  return <tr class="sweep-filler" aria-hidden="true"><td style={{ height: `${height}px` }} /></tr>;
}

interface HeadProps {
  name: string;
  label: string;
  isNumber: boolean;
  order: string;
  onOrder: (order: string) => void;
}

function SortedHead({ name, label, isNumber, order, onOrder }: HeadProps): JSX.Element {
  const isMine = order === name || order === `-${name}`;
  const isDown = order === `-${name}`;
  const direction = name === "best" ? (isDown ? "worst first" : "best first") : isDown ? "descending" : "ascending";
  return (
    <th scope="col" class={isNumber ? "number" : ""} {...(isMine ? { "aria-sort": isDown ? "descending" as const : "ascending" as const } : {})}>
      <button type="button" class="sort" title={isMine ? `Sorted: ${direction}` : `Sort by ${label}`} onClick={() => onOrder(isMine && !isDown ? `-${name}` : name)}>
        {label} {isMine && <span aria-hidden="true">{isDown ? "↓" : "↑"}</span>}
      </button>
    </th>
  );
}

interface RowProps {
  trial: TrialView;
  /** In the table, where the head is 1. */
  position: number;
  workspace: string;
  parameters: readonly string[];
  isBest: boolean;
  isSelected: boolean;
  onToggle: () => void;
  onHighlight: (number: number | undefined) => void;
}

function TrialRow({ trial, position, workspace, parameters, isBest, isSelected, onToggle, onHighlight }: RowProps): JSX.Element {
  const flat = flattenParameters(trial.parameters);
  return (
    <tr data-trial={trial.number} aria-rowindex={position} class={isBest ? "best" : ""} onPointerEnter={() => onHighlight(trial.number)} onPointerLeave={() => onHighlight(undefined)}>
      <td><input type="checkbox" aria-label={`Select trial ${trial.number}`} checked={isSelected} onChange={onToggle} /></td>
      <td><Link href={formatAddress(workspace, "runs", [trial.run_id])} title={trial.run_id}>Trial {trial.number}</Link></td>
      <td>
        <StatusMark status={trial.status} />
        {trial.cut_interval !== null && <span class="small muted" title={trial.cut_reason}> cut at {trial.cut_interval}</span>}
        {trial.error && <span class="small muted" title={trial.error}> {trial.error.slice(0, 40)}</span>}
      </td>
      <td class="number">{trial.best === null ? "" : formatNumber(trial.best)}{isBest && <span class="hidden-label"> (best)</span>}</td>
      <td class="number">{trial.last === null ? "" : formatNumber(trial.last)}</td>
      <td><Sparkline values={trial.series} /></td>
      {parameters.map((each) => <td key={each} class="wide" title={formatParameter(flat[each])}>{formatParameter(flat[each])}</td>)}
      <td class="number">{trial.reports}</td>
      <td>
        {trial.ended_at === null ? <Duration from={trial.started_at} to={null} /> : formatDuration(toNumber(trial.ended_at) - toNumber(trial.started_at))}
      </td>
    </tr>
  );
}
