/** Settings: of the user, of the workspace for its owners, and of the server for administrators. */
import type { ComponentType, JSX } from "preact";
import { useContext } from "preact/hooks";
import { formatAddress } from "../../address";
import { Empty } from "../../components/feedback";
import { Tabs } from "../../components/tabs";
import { hasRole, Session } from "../../session";
import type { PageProps } from "../page";
import { AccountPart } from "./account";
import { AuditPart } from "./audit";
import { MembersPart } from "./members";
import { NotificationsPart } from "./notifications";
import { QuotasPart } from "./quotas";
import { RetentionPart } from "./retention";
import { SecretsPart } from "./secrets";
import { TokensPart } from "./tokens";
import { UsersPart } from "./users";

export interface PartProps {
  workspace: string;
}

interface Part {
  id: string;
  label: string;
  show: ComponentType<PartProps>;
  isHidden?: boolean;
}

export function SettingsPage({ place, workspace }: PageProps): JSX.Element {
  const me = useContext(Session);
  const parts: readonly Part[] = [
    { id: "", label: "Account", show: AccountPart },
    { id: "tokens", label: "Tokens", show: TokensPart },
    { id: "members", label: "Members", show: MembersPart },
    { id: "quotas", label: "Quotas", show: QuotasPart },
    { id: "secrets", label: "Secrets", show: SecretsPart },
    { id: "notifications", label: "Notifications", show: NotificationsPart },
    { id: "retention", label: "Retention", show: RetentionPart },
    { id: "users", label: "Users", show: UsersPart, isHidden: !me?.is_admin },
    { id: "audit", label: "Audit log", show: AuditPart, isHidden: !hasRole(me, workspace, "owner") },
  ];
  const shown = parts.filter((each) => !each.isHidden);
  const chosen = shown.find((each) => each.id === (place.rest[0] ?? ""));
  return (
    <div class="stack">
      <h1>Settings</h1>
      <Tabs label="Settings" current={chosen?.id ?? ""} tabs={shown.map(({ id, label }) => ({ id, label, href: formatAddress(workspace, "settings", [id]) }))} />
      {chosen ? <chosen.show workspace={workspace} /> : <Empty title="There are no such settings, or you may not see them." />}
    </div>
  );
}
