import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { ChartOptions } from "../../../charts/alignment";
import { LineChart } from "../../../charts/lines";
import type { ChartLink } from "../../../charts/link";
import type { Points } from "../../../charts/points";
import type { UseHistory } from "../use";

interface Props {
  use: UseHistory;
  options: ChartOptions;
  link: ChartLink;
  origin: number | undefined;
}

/** What the run uses of its machine, since this page was opened. */
export function SystemUse({ use, options, link, origin }: Props): JSX.Element {
  return (
    <section class="system-use" aria-label="System use since this page was opened">
      <h2>System use</h2>
      <p class="muted small">Measured while this page is open. What a script logs under system/ is kept with the run.</p>
      <div class="chart-grid">
        {[...use.charts].map(([title, points]) => <Chart key={title} {...{ title, points, options, link, origin }} />)}
      </div>
    </section>
  );
}

/** Why there are no charts of the machine. */
export function NoSystemUse({ isOver }: { isOver: boolean }): JSX.Element {
  return (
    <section class="system-use" aria-label="System use">
      <h2>System use</h2>
      <p class="muted">
        {isOver ? "None was recorded for this run. " : "Nothing has been measured yet. "}
        The studio measures runs on the machine of the workspace while their page is open. What a script logs under system/ is kept with the run.
      </p>
    </section>
  );
}

function Chart({ title, points, options, link, origin }: Omit<Props, "use"> & { title: string; points: Points }): JSX.Element {
  const series = useMemo(() => [{ id: title, label: title, points, ...(origin === undefined ? {} : { origin }) }], [title, points, origin]);
  return <LineChart title={title} series={series} options={options} link={link} height={140} />;
}
