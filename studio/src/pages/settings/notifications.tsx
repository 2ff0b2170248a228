/** Channels that tell people when runs end: of the workspace, and of the user. */
import type { JSX } from "preact";
import { useContext, useState } from "preact/hooks";
import { call } from "../../api/client";
import { useResource } from "../../api/resource";
import type { Channel } from "../../api/types";
import { attempt, DangerButton } from "../../components/actions";
import { Dialog } from "../../components/dialog";
import { Empty, ErrorBox, Loading, notify, notifyError } from "../../components/feedback";
import { Listing } from "../../components/listing";
import { Age } from "../../components/time";
import { Session, useMay } from "../../session";
import { ADDRESS_NAMES, describeEvents, describeRuns, EVENTS, type EventName, KIND_NAMES, type Kind, PLACEHOLDERS } from "./channels";
import type { PartProps } from "./index";

export function NotificationsPart({ workspace }: PartProps): JSX.Element {
  const me = useContext(Session)?.user ?? "";
  const mayOwn = useMay(workspace, "owner");
  const mayAdd = useMay(workspace, "contributor");
  const [edited, setEdited] = useState<Channel | "new">();
  const found = useResource(
    async (signal) => (await call("POST /api/v1/workspaces/{workspace}/operations/notifications.list", { workspace }, { signal })).result,
    [workspace],
  );
  const mayChange = (channel: Channel) => (channel.owner === "" ? mayOwn : channel.owner === me && mayAdd);
  return (
    <section class="stack" aria-label="Notifications">
      <p class="muted prose">A channel tells a program, a web address or people by e-mail when runs complete, fail, are canceled or hang. It is tried until it arrives, and delays no run.</p>
      {mayAdd && <div><button type="button" class="primary" onClick={() => setEdited("new")}>Add a channel</button></div>}
      {found.error && <ErrorBox error={found.error} onRetry={found.reload} />}
      {!found.value && !found.error && <Loading />}
      {found.value && !found.value.length && <Empty title="There are no channels." />}
      {found.value && found.value.length > 0 && (
        <Listing label="Channels" columns={["Name", "Tells", "When", "Of", "Last", mayAdd && { hidden: "Actions" }]}>
          {found.value.map((each) => (
            <tr key={each.name}>
              <td class="name">{each.name}</td>
              <td>{KIND_NAMES[each.kind]} <code>{each.address}</code>{each.is_signed && <span class="muted small"> signed</span>}</td>
              <td>{describeEvents(each.events)}</td>
              <td>{describeRuns(each, me)}</td>
              <td>{showLast(each)}</td>
              {mayAdd && <td class="actions">{mayChange(each) && <Actions {...{ workspace, channel: each, reload: found.reload }} onEdit={() => setEdited(each)} />}</td>}
            </tr>
          ))}
        </Listing>
      )}
      {edited && (
        <ChannelDialog
          {...{ workspace, me, mayOwn }}
          channel={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onDone={() => {
            setEdited(undefined);
            found.reload();
          }}
        />
      )}
    </section>
  );
}

function showLast(channel: Channel): JSX.Element {
  if (channel.last_error) return <span class="bad">{channel.last_error}</span>;
  return channel.last_sent_at === null ? <span class="muted">nothing yet</span> : <Age at={channel.last_sent_at} />;
}

interface ActionProps {
  workspace: string;
  channel: Channel;
  reload: () => void;
  onEdit: () => void;
}

function Actions({ workspace, channel, reload, onEdit }: ActionProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const { name, owner } = channel;
  async function test(): Promise<void> {
    setBusy(true);
    try {
      const { result } = owner
        ? await call("POST /api/v1/workspaces/{workspace}/operations/notifications.test_own", { workspace, owner, name })
        : await call("POST /api/v1/workspaces/{workspace}/operations/notifications.test", { workspace, name });
      if (result.is_delivered) notify(`${name} was told.`);
      else notifyError(new Error(`${name} could not be told: ${result.error}`));
    } catch (error) {
      notifyError(error);
    }
    setBusy(false);
    reload();
  }
  return (
    <>
      <button type="button" disabled={isBusy} aria-label={`Test ${name}`} onClick={() => void test()}>Test</button>
      <button type="button" aria-label={`Edit ${name}`} onClick={onEdit}>Edit</button>
      <DangerButton
        label="Delete"
        name={`Delete ${name}`}
        title={`Delete the channel ${name}?`}
        text="Notifications that were not delivered yet are dropped."
        action="Delete the channel"
        done={`${name} is deleted.`}
        work={() =>
          owner
            ? call("POST /api/v1/workspaces/{workspace}/operations/notifications.delete_own", { workspace, owner, name })
            : call("POST /api/v1/workspaces/{workspace}/operations/notifications.delete", { workspace, name })
        }
        onDone={reload}
      />
    </>
  );
}

interface DialogProps {
  workspace: string;
  me: string;
  mayOwn: boolean;
  channel: Channel | undefined;
  onClose: () => void;
  onDone: () => void;
}

function ChannelDialog({ workspace, me, mayOwn, channel, onClose, onDone }: DialogProps): JSX.Element {
  const [name, setName] = useState(channel?.name ?? "");
  const [kind, setKind] = useState<Kind>(channel?.kind ?? "webhook");
  const [address, setAddress] = useState(channel?.address ?? "");
  const [events, setEvents] = useState<readonly EventName[]>(channel?.events ?? EVENTS);
  const [experiment, setExperiment] = useState(channel?.experiment ?? "");
  const [isOwn, setOwn] = useState(channel ? channel.owner !== "" : !mayOwn);
  const [isChosen, setChosen] = useState(channel?.only_chosen ?? false);
  const [key, setKey] = useState("");
  // The command of a user would run as the account of the server.
  const kinds: readonly Kind[] = isOwn ? ["webhook", "email"] : ["webhook", "email", "command"];
  const shownKind = kinds.includes(kind) ? kind : "webhook";
  async function save(): Promise<void> {
    const given = { workspace, name: name.trim(), kind: shownKind, address: address.trim(), events: [...events], experiment: experiment.trim(), only_chosen: isChosen, key: shownKind === "webhook" ? key : "" };
    const work = () =>
      isOwn
        ? call("POST /api/v1/workspaces/{workspace}/operations/notifications.put_own", { ...given, owner: me })
        : call("POST /api/v1/workspaces/{workspace}/operations/notifications.put", given);
    if (await attempt(work, `${given.name} is kept.`)) onDone();
  }
  return (
    <Dialog title={channel ? `Channel ${channel.name}` : "Add a channel"} onClose={onClose}>
      <form
        class="stack-small"
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {!channel && <label class="field"><span>Name</span><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>}
        {!channel && mayOwn && (
          <label class="field">
            <span>Of which runs</span>
            <select value={isOwn ? "own" : "all"} onChange={(event) => setOwn(event.currentTarget.value === "own")}>
              <option value="all">of all users</option>
              <option value="own">only mine</option>
            </select>
          </label>
        )}
        <label class="field">
          <span>Kind</span>
          <select value={shownKind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
            {kinds.map((each) => <option key={each} value={each}>{KIND_NAMES[each]}</option>)}
          </select>
        </label>
        <label class="field"><span>{ADDRESS_NAMES[shownKind]}</span><input required value={address} placeholder={PLACEHOLDERS[shownKind]} onInput={(event) => setAddress(event.currentTarget.value)} /></label>
        {shownKind === "webhook" && (
          <label class="field">
            <span>Key <span class="muted small">{channel?.is_signed ? "signs what is sent; without a new one it is not signed any more" : "signs what is sent, if there is one"}</span></span>
            <input type="password" autocomplete="new-password" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
          </label>
        )}
        <fieldset class="choices">
          <legend>When a run</legend>
          {EVENTS.map((each) => (
            <label key={each}>
              <input type="checkbox" checked={events.includes(each)} onChange={(event) => setEvents(event.currentTarget.checked ? [...events, each] : events.filter((one) => one !== each))} /> {each}
            </label>
          ))}
        </fieldset>
        <label class="field"><span>Experiment <span class="muted small">empty for all</span></span><input value={experiment} onInput={(event) => setExperiment(event.currentTarget.value)} /></label>
        <label><input type="checkbox" checked={isChosen} onChange={(event) => setChosen(event.currentTarget.checked)} /> Only runs that name the channel</label>
        <div class="buttons">
          <button type="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="primary" disabled={!events.length}>Keep the channel</button>
        </div>
      </form>
    </Dialog>
  );
}
