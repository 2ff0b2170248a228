import type { JSX } from "preact";
import { formatAddress, setParameters, useParameter } from "../../address";
import { seriesVariable } from "../../charts/colors";
import { Link } from "../../components/link";
import { StatusMark } from "../../components/status";
import { type ComparedRun, formatDelta, type Group, keepDifferent, METRIC_VALUES, type MetricValue, nameRun, type Row } from "./rows";

interface Props {
  workspace: string;
  runs: readonly ComparedRun[];
  groups: readonly Group[];
  /** Index of the run that the others are compared with. */
  baseline: number;
  value: MetricValue;
  onRemove: (id: string) => void;
}

const VALUE_NAMES: Readonly<Record<MetricValue, string>> = { last: "last value", minimum: "lowest value", maximum: "highest value" };

/** One column for each run, one row for each thing they may differ in. */
export function DifferenceTable({ workspace, runs, groups, baseline, value, onRemove }: Props): JSX.Element {
  const [all, setAll] = useParameter("all");
  const shown = all ? groups : keepDifferent(groups);
  return (
    <>
      <div class="row">
        <label class="check">
          <input type="checkbox" checked={!all} onChange={(event) => setAll(event.currentTarget.checked ? "" : "1")} />
          Only what differs
        </label>
        <label class="row">
          <span class="muted">Results show the</span>
          <select value={value} onChange={(event) => setParameters({ value: event.currentTarget.value === "last" ? undefined : event.currentTarget.value })}>
            {METRIC_VALUES.map((each) => <option key={each} value={each}>{VALUE_NAMES[each]}</option>)}
          </select>
        </label>
        <span class="muted small">The best value of a row is marked with ★.</span>
      </div>
      <div class="scroll compare-scroll" tabIndex={0} role="group" aria-label="Table of differences">
        <table class="compare-table">
          <thead>
            <tr>
              <td />
              {runs.map((run, index) => <RunHead key={run.record.id} {...{ run, index, workspace, onRemove }} isBaseline={index === baseline} />)}
            </tr>
          </thead>
          {shown.map((group) => (
            <tbody key={group.title}>
              <tr><th class="compare-group" scope="rowgroup" colSpan={runs.length + 1}>{group.title}</th></tr>
              {group.rows.map((row) => <DifferenceRow key={row.name} row={row} baseline={baseline} hasDelta={group.title === "Results"} />)}
            </tbody>
          ))}
        </table>
      </div>
      {!shown.length && <p class="muted">{runs.length > 1 ? "These runs do not differ." : "Add another run to compare it with."}</p>}
    </>
  );
}

interface HeadProps {
  run: ComparedRun;
  index: number;
  workspace: string;
  isBaseline: boolean;
  onRemove: (id: string) => void;
}

function RunHead({ run: { record }, index, workspace, isBaseline, onRemove }: HeadProps): JSX.Element {
  const name = nameRun(record);
  return (
    <th scope="col" class="compare-run">
      <div class="compare-name">
        <i class="plot-swatch" style={{ background: `var(${seriesVariable(index)})` }} />
        <Link href={formatAddress(workspace, "runs", [record.id])} title={record.id}>{name}</Link>
        <button type="button" class="plain" aria-label={`Remove ${name}`} title="Remove" onClick={() => onRemove(record.id)}>✕</button>
      </div>
      <div class="row">
        <StatusMark status={record.status} />
        <label class="check small">
          <input type="radio" name="baseline" checked={isBaseline} aria-label={`Baseline ${name}`} onChange={() => setParameters({ base: record.id })} />
          Baseline
        </label>
      </div>
    </th>
  );
}

const LONGEST = 300;

function DifferenceRow({ row, baseline, hasDelta }: { row: Row; baseline: number; hasDelta: boolean }): JSX.Element {
  return (
    <tr>
      <th scope="row">{row.name}</th>
      {row.cells.map((cell, index) => {
        const isOther = cell !== row.cells[baseline];
        const isBest = row.best.includes(index);
        const delta = hasDelta && index !== baseline ? formatDelta(row.numbers[index], row.numbers[baseline]) : "";
        return (
          <td key={index} class={[isOther && "compare-other", isBest && "compare-best"].filter(Boolean).join(" ")} title={cell && cell.length > LONGEST ? cell : ""}>
            {cell === undefined ? <span class="muted">none</span> : cell.length > LONGEST ? `${cell.slice(0, LONGEST)}…` : cell}
            {isBest && <><span aria-hidden="true"> ★</span><span class="hidden-label"> best</span></>}
            {delta && <span class="muted small"> {delta}</span>}
          </td>
        );
      })}
    </tr>
  );
}
