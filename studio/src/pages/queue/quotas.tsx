/** Quotas with what their owners use now. */
import type { JSX } from "preact";
import type { QuotaReport } from "../../api/types";
import { describeOwner, describeUse, LIMIT_NAMES, LIMITS, shareOf } from "./compute";

export function QuotaTable({ quotas, onEdit }: { quotas: readonly QuotaReport[]; onEdit?: (report: QuotaReport) => void }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Quotas">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Who</th>
            {LIMITS.map((limit) => <th key={limit} scope="col">{LIMIT_NAMES[limit]}</th>)}
            {onEdit && <th scope="col"><span class="hidden-label">Actions</span></th>}
          </tr>
        </thead>
        <tbody>
          {quotas.map((report) => (
            <tr key={report.quota.owner}>
              <td class="name">{describeOwner(report.quota.owner)}</td>
              {LIMITS.map((limit) => {
                const share = shareOf(report, limit);
                return (
                  <td key={limit}>
                    <div>{describeUse(report, limit)}</div>
                    {share !== undefined && (
                      <div class="meter" aria-hidden="true">
                        <span class={share >= 1 ? "meter-full" : ""} style={{ width: `${share * 100}%` }} />
                      </div>
                    )}
                  </td>
                );
              })}
              {onEdit && (
                <td class="actions">
                  <button type="button" aria-label={`Change the quota: ${describeOwner(report.quota.owner)}`} onClick={() => onEdit(report)}>
                    Change
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
