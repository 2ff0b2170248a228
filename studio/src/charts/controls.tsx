/** How charts are drawn, kept in the address: `?x=time&smooth=0.6&log=y&zoom=10~200`. */
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { setParameters, usePlace } from "../address";
import { type ChartOptions, HORIZONTALS, type Horizontal } from "./alignment";
import { ChartLink, formatZoom, parseZoom } from "./link";

const LABELS: Readonly<Record<Horizontal, string>> = { step: "Step", time: "Time", relative: "Relative time" };

/** The options in the address, and the link of the charts of this page, whose zoom is in the address too. */
export function useChartOptions(): { options: ChartOptions; link: ChartLink } {
  const { query } = usePlace();
  const [x, smooth, log, zoom] = ["x", "smooth", "log", "zoom"].map((name) => query.get(name) ?? "") as [string, string, string, string];
  const options = useMemo(
    () => ({
      x: HORIZONTALS.find((each) => each === x) ?? "step",
      smoothing: Math.min(0.999, Math.max(0, Number(smooth) || 0)),
      logX: log.includes("x"),
      logY: log.includes("y"),
    }),
    [x, smooth, log],
  );
  const link = useMemo(() => {
    const made = new ChartLink();
    made.zoom = parseZoom(zoom);
    return made;
  }, []);
  useEffect(() => link.setZoom(parseZoom(zoom)), [zoom]);
  useEffect(() => link.subscribe((next) => setParameters({ zoom: formatZoom(next) })), [link]);
  return { options, link };
}

export function ChartControls({ options, link, children }: { options: ChartOptions; link: ChartLink; children?: JSX.Element | null }): JSX.Element {
  const { query } = usePlace();
  const setLog = (name: string, isOn: boolean) => {
    const axes = ["x", "y"].filter((each) => (each === name ? isOn : each === "x" ? options.logX : options.logY));
    setParameters({ log: axes.join(""), ...(name === "x" ? { zoom: undefined } : {}) });
  };
  return (
    <div class="chart-controls" role="group" aria-label="How charts are drawn">
      {children}
      <label>
        <span class="muted">Horizontal axis</span>{" "}
        <select
          value={options.x}
          onChange={(event) => {
            const x = event.currentTarget.value;
            setParameters({ x: x === "step" ? undefined : x, zoom: undefined });
          }}
        >
          {HORIZONTALS.map((each) => <option key={each} value={each}>{LABELS[each]}</option>)}
        </select>
      </label>
      <label class="chart-smoothing">
        <span class="muted">Smoothing</span>{" "}
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={options.smoothing}
          onInput={(event) => setParameters({ smooth: event.currentTarget.value === "0" ? undefined : event.currentTarget.value })}
        />
        <output>{options.smoothing ? options.smoothing.toFixed(2) : "off"}</output>
      </label>
      <label>
        <input type="checkbox" checked={options.logY} onChange={(event) => setLog("y", event.currentTarget.checked)} /> Log values
      </label>
      <label>
        <input type="checkbox" checked={options.logX} onChange={(event) => setLog("x", event.currentTarget.checked)} /> Log axis
      </label>
      {query.get("zoom") && (
        <button type="button" onClick={() => link.setZoom(undefined)}>
          Show all
        </button>
      )}
    </div>
  );
}
