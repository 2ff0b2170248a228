/** One metric of a run, shown as what it is: a number, lines, a table, a picture, a structured value. */
import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { call, request } from "../../../api/client";
import { useResource } from "../../../api/resource";
import type { MetricSummary } from "../../../api/types";
import { type ChartOptions, chooseXs } from "../../../charts/alignment";
import { refine, useFiner } from "../../../charts/finer";
import { type ChartSeries, LineChart } from "../../../charts/lines";
import type { ChartLink } from "../../../charts/link";
import { countInRank, type Points } from "../../../charts/points";
import { guessGoal } from "../../../charts/summaries";
import { ErrorBox, Loading } from "../../../components/feedback";
import { formatNumber, toNumber } from "../../../text/numbers";
import type { MetricFeed, RankLine } from "./feed";
import { readRows, readStructured } from "./structured";
import { useLines } from "./use_feed";
import { Bars, Matrix, XyChart } from "./xy";

const MOST_ROWS = 200;

export interface CardProps {
  workspace: string;
  runId: string;
  metric: MetricSummary;
}

/** Whether one number or text says all. */
export function isSingle(metric: MetricSummary): boolean {
  return metric.kind === "scalar" && metric.count === 1;
}

/** Whether lines show it. */
export function isLine(metric: MetricSummary): boolean {
  if (metric.kind === "system") return true;
  return metric.kind === "scalar" && metric.count > 1 && (metric.minimum !== null || !Number.isNaN(toNumber(metric.last)) || metric.last === "NaN");
}

export function NumberCard({ metric }: { metric: MetricSummary }): JSX.Element {
  const { name, last } = metric;
  const shown = typeof last === "number" || (typeof last === "string" && last !== "" && !Number.isNaN(Number(last)));
  return (
    <div class="number-card">
      <dt title={name}>{name}</dt>
      <dd>{shown ? formatNumber(last) : showCell(last)}</dd>
    </div>
  );
}

function showCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return formatNumber(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface LineCardProps extends CardProps {
  feed: MetricFeed;
  hasRanks: boolean;
  options: ChartOptions;
  link: ChartLink;
  origin: number | undefined;
}

export function LineCard({ workspace, runId, metric, feed, hasRanks, options, link, origin }: LineCardProps): JSX.Element {
  const lines = useLines(feed, metric.name);
  const finer = useFiner({
    ...{ workspace, name: metric.name, link, byRank: hasRanks, isReady: !!lines?.length },
    locate: () =>
      (lines ?? []).map(({ rank, points, count }) => ({
        ...{ id: String(rank), runId, rank, points },
        xs: chooseXs(countInRank(points, count, lines?.length ?? 1), options.x, origin),
      })),
  });
  const owner = metric.kind === "system" && metric.name.startsWith("system/node/") ? "Node" : "Rank";
  const series = useMemo(() => makeSeries(lines ?? [], finer, origin, owner), [lines, finer, origin, owner]);
  return <LineChart title={metric.name} series={series} options={options} link={link} goal={guessGoal(metric.name)} />;
}

function makeSeries(lines: readonly RankLine[], finer: ReadonlyMap<string, Points>, origin: number | undefined, owner: string): ChartSeries[] {
  return lines.map((line) => ({
    id: String(line.rank),
    label: line.rank === null ? "Outside of the job" : `${owner} ${line.rank}`,
    points: countInRank(refine(line.points, finer.get(String(line.rank))), line.count, lines.length),
    count: line.count,
    ...(origin === undefined ? {} : { origin }),
  }));
}

/** The card of a metric that neither a number nor lines show. It is read again when more is logged. */
export function OtherCard({ workspace, runId, metric }: CardProps): JSX.Element {
  const isTable = metric.kind === "row";
  const { name, count } = metric;
  const series = useResource(
    async (signal) => {
      const most = isTable ? MOST_ROWS : 100;
      const found = await call("GET /api/v1/workspaces/{workspace}/runs/{run_id}/metrics", { workspace, run_id: runId, name, max_points: most }, { signal });
      return found.metrics[0];
    },
    [workspace, runId, name, count],
  );
  let content: ComponentChildren = <Loading />;
  if (series.error) content = <ErrorBox error={series.error} />;
  else if (series.value) {
    const { values } = series.value;
    if (isTable) content = <Rows name={name} values={values} count={count} />;
    else if (metric.kind === "image" || metric.kind === "json") {
      content = <Chosen label={name} values={values} render={(file) => metric.kind === "image" ? <Picture {...{ workspace, runId, file, name }} /> : <StructuredFile {...{ workspace, runId, file, name }} />} />;
    } else content = <Texts values={values} count={count} />;
  }
  return (
    <section class="chart" aria-label={name}>
      <div class="chart-head">
        <h3 class="chart-title" title={name}>{name}</h3>
      </div>
      <div class="metric-content" tabIndex={0} role="group" aria-label={`Content of ${name}`}>{content}</div>
    </section>
  );
}

function Rows({ name, values, count }: { name: string; values: readonly unknown[]; count: number }): JSX.Element {
  const { columns, rows, numeric } = readRows(name, values);
  return (
    <>
      <table class="metric-table">
        <thead>
          <tr>{columns.map((each) => <th key={each} scope="col" class={numeric.includes(each) ? "number" : ""}>{each}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n}>{row.map((cell, at) => <td key={at} class={numeric.includes(columns[at] ?? "") ? "number" : ""}>{showCell(cell)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {count > rows.length && <p class="muted small">{rows.length} of {count} rows, the first and the last among them.</p>}
    </>
  );
}

function Texts({ values, count }: { values: readonly unknown[]; count: number }): JSX.Element {
  return (
    <>
      <ol class="metric-texts">{values.map((each, n) => <li key={n}>{showCell(each)}</li>)}</ol>
      {count > values.length && <p class="muted small">{values.length} of {count} values.</p>}
    </>
  );
}

/** One of several files; the newest at first. */
function Chosen({ label, values, render }: { label: string; values: readonly unknown[]; render: (file: string) => ComponentChildren }): JSX.Element {
  const files = values.filter((each): each is string => typeof each === "string");
  const [chosen, setChosen] = useState<number | undefined>(undefined);
  const at = Math.min(chosen ?? files.length - 1, files.length - 1);
  const file = files[at];
  return (
    <>
      {file !== undefined && render(file)}
      {files.length > 1 && (
        <label class="row small">
          <span class="muted">{at + 1} of {files.length}</span>
          <input
            type="range"
            aria-label={`Which of ${label}`}
            min="0"
            max={files.length - 1}
            value={at}
            onInput={(event) => setChosen(Number(event.currentTarget.value))}
          />
        </label>
      )}
    </>
  );
}

interface FileProps {
  workspace: string;
  runId: string;
  file: string;
  name: string;
}

function addressOfFile({ workspace, runId, file }: FileProps): string {
  const path = file.split("/").map(encodeURIComponent).join("/");
  return `/api/v1/workspaces/${encodeURIComponent(workspace)}/runs/${encodeURIComponent(runId)}/files/${path}`;
}

function Picture(props: FileProps): JSX.Element {
  const [isBroken, setBroken] = useState(false);
  if (isBroken) {
    return <p class="muted">{props.file} cannot be shown as a picture. <a href={addressOfFile(props)} download>Download it</a></p>;
  }
  return <img class="metric-picture" src={`${addressOfFile(props)}?preview=image`} alt={props.name} onError={() => setBroken(true)} />;
}

function StructuredFile(props: FileProps): JSX.Element {
  const { workspace, runId, file, name } = props;
  const text = useResource(async (signal) => (await request(addressOfFile(props), { signal })).text(), [workspace, runId, file]);
  if (text.error) return <ErrorBox error={text.error} />;
  if (text.value === undefined) return <Loading />;
  const found = readStructured(text.value);
  if (found.kind === "matrix") return <Matrix labels={found.labels} rows={found.rows} />;
  if (found.kind === "lines") return <XyChart label={name} xLabel={found.xLabel} yLabel={found.yLabel} lines={found.lines} />;
  if (found.kind === "bars") {
    return (
      <>
        <Bars label={name} edges={found.edges} counts={found.counts} />
        {found.note && <p class="muted small">{found.note}</p>}
      </>
    );
  }
  return <pre>{found.text.slice(0, 20_000)}</pre>;
}
