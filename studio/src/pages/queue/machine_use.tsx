/** How busy the machine of the workspace is now. */
import type { JSX } from "preact";
import type { MachineUse } from "../../api/types";
import { formatBytes, toNumber } from "../../text/numbers";
import { shareUsed } from "./compute";

export function MachineUsePart({ machine }: { machine: MachineUse }): JSX.Element {
  const cpu = toNumber(machine.cpu_percent) / 100;
  const diskUsed = machine.disk_total - machine.disk_free;
  return (
    <section class="card stack-small" aria-label="Machine now">
      <h2>Machine {machine.host} now</h2>
      <div class="uses">
        <Use name="CPU" share={cpu} text={`${Math.round(cpu * 100)} % of ${machine.cpus}`} />
        <Use
          name="Memory"
          share={shareUsed(machine.memory_used, machine.memory_total)}
          text={`${formatBytes(machine.memory_used)} of ${formatBytes(machine.memory_total)}`}
        />
        <Use name="Disk" share={shareUsed(diskUsed, machine.disk_total)} text={`${formatBytes(machine.disk_free)} free`} />
        {machine.gpus.map((gpu) => (
          <Use
            key={gpu.index}
            name={`GPU ${gpu.index} ${gpu.name}`}
            share={toNumber(gpu.percent) / 100 || 0}
            text={`${gpu.percent === null ? "?" : Math.round(toNumber(gpu.percent))} %, ${formatBytes(gpu.memory_used ?? 0)} of ${formatBytes(gpu.memory_total ?? 0)}`}
          />
        ))}
      </div>
    </section>
  );
}

function Use({ name, share, text }: { name: string; share: number; text: string }): JSX.Element {
  return (
    <div>
      <div class="row small"><span class="muted">{name}</span><span>{text}</span></div>
      <div class="meter" aria-hidden="true"><span class={share >= 0.95 ? "meter-full" : ""} style={{ width: `${share * 100}%` }} /></div>
    </div>
  );
}
