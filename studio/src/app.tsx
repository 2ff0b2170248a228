/** The frame of all pages: navigation, workspace, and the page that the address shows. */
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { formatAddress, navigate, type Place, usePlace } from "./address";
import { call, setCsrfToken } from "./api/client";
import { useResource } from "./api/resource";
import { Empty, ErrorBox, Loading, Notices } from "./components/feedback";
import { Keyboard } from "./components/keyboard";
import { Link } from "./components/link";
import { Tabs } from "./components/tabs";
import { ComparePage } from "./pages/compare";
import { DataPage } from "./pages/data";
import { EnvironmentsPage } from "./pages/environments";
import { ModelsPage } from "./pages/models";
import type { PageProps } from "./pages/page";
import { QueuePage } from "./pages/queue";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { ServicesPage } from "./pages/services";
import { SettingsPage } from "./pages/settings";
import { SweepPage } from "./pages/sweep";
import { Session } from "./session";
import { ThemeButton } from "./theme";

const NAVIGATION: readonly (readonly [string, string])[] = [
  ["runs", "Runs"],
  ["sweeps", "Sweeps"],
  ["queue", "Queue"],
  ["models", "Models"],
  ["services", "Services"],
  ["environments", "Environments"],
  ["data", "Data"],
  ["settings", "Settings"],
];

/** The page of an address: `/w/team/runs` is the table, `/w/team/runs/<id>` one run. */
function choosePage(place: Place): ComponentType<PageProps> | undefined {
  const pages: Readonly<Record<string, ComponentType<PageProps>>> = {
    runs: place.rest.length ? RunPage : RunsPage,
    sweeps: SweepPage,
    compare: ComparePage,
    queue: QueuePage,
    models: ModelsPage,
    services: ServicesPage,
    environments: EnvironmentsPage,
    data: DataPage,
    settings: SettingsPage,
  };
  return pages[place.page];
}

export function App(): JSX.Element {
  const place = usePlace();
  const start = useResource(async () => {
    const [me, { workspaces }] = await Promise.all([
      call("GET /api/v1/me", {}),
      call("GET /api/v1/workspaces", {}),
    ]);
    setCsrfToken(me.csrf_token);
    return { me, workspaces: workspaces.map((each) => each.name) };
  }, []);

  const first = start.value?.workspaces[0];
  const workspace = place.workspace || first || "";
  const isIncomplete = !!workspace && (!place.workspace || !place.page);
  useEffect(() => {
    if (isIncomplete) navigate(formatAddress(workspace, "runs", [], { embed: place.query.get("embed") ?? "" }), { replace: true });
  }, [isIncomplete, workspace]);
  useEffect(() => {
    document.title = workspace ? `${workspace} · Trainmaster` : "Trainmaster";
  }, [workspace, place.page]);

  if (start.error) return <main class="page"><ErrorBox error={start.error} onRetry={start.reload} /></main>;
  if (!start.value) return <main class="page"><Loading /></main>;
  const isEmbedded = place.query.get("embed") === "1";
  return (
    <Session.Provider value={start.value.me}>
      <a class="skip" href="#content">Skip to content</a>
      {!isEmbedded && <Header place={place} workspace={workspace} workspaces={start.value.workspaces} user={start.value.me.user} />}
      <main id="content" class="page" tabIndex={-1}>
        <Content place={place} workspace={workspace} workspaces={start.value.workspaces} />
      </main>
      <Notices />
      <Keyboard />
    </Session.Provider>
  );
}

function Content({ place, workspace, workspaces }: { place: Place; workspace: string; workspaces: string[] }): JSX.Element {
  if (!workspaces.includes(workspace)) {
    return workspace ? (
      <Empty title={`There is no workspace "${workspace}", or you have no role in it.`} />
    ) : (
      <Empty title="There is no workspace yet.">
        <p class="muted">Create one: trainmaster workspace create NAME --server ADDRESS</p>
      </Empty>
    );
  }
  const Page = choosePage(place);
  if (!Page) return place.page ? <Empty title={`There is no page "${place.page}".`} /> : <Loading />;
  return <Page key={`${workspace}/${place.page}/${place.rest[0] ?? ""}`} place={place} workspace={workspace} />;
}

interface HeaderProps {
  place: Place;
  workspace: string;
  workspaces: string[];
  user: string;
}

function Header({ place, workspace, workspaces, user }: HeaderProps): JSX.Element {
  const pages = NAVIGATION.map(([id, label]) => ({ id, label, href: formatAddress(workspace, id) }));
  return (
    <header class="header">
      <Link class="brand" href={formatAddress(workspace, "runs")}>Trainmaster</Link>
      <select
        class="workspace"
        aria-label="Workspace"
        value={workspace}
        onChange={(event) => navigate(formatAddress(event.currentTarget.value, "runs"))}
      >
        {workspaces.map((each) => <option key={each} value={each}>{each}</option>)}
      </select>
      <Tabs tabs={pages} current={place.page} label="Pages" style="navigation" />
      <span class="spacer" />
      <a class="muted user" href="/login" title="Signed in; sign out here">{user}</a>
      <ThemeButton />
    </header>
  );
}
