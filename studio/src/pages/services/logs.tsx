/** The end of a service's logs, which follows what is written. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { ErrorBox } from "../../components/feedback";

const FIRST_LINES = 1000;
const MOST_LETTERS = 400_000;
const WAIT_SECONDS = 20;
const PAUSE_MILLISECONDS = 2000;

interface Part {
  text: string;
  places: Record<string, Record<string, unknown>>;
}

/** Asks for what was added as long as the page is visible. Each request waits on the server until there is something. */
function useLogs(workspace: string, name: string): { text: string; isLoaded: boolean; error: ApiError | undefined } {
  const [text, setText] = useState("");
  const [isLoaded, setLoaded] = useState(false);
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const read = async () => {
      let places: Part["places"] | undefined;
      while (!signal.aborted) {
        try {
          const answer = places
            ? await call("POST /api/v1/workspaces/{workspace}/operations/services.read_logs", { workspace, name, places, seconds: WAIT_SECONDS }, { signal })
            : await call("POST /api/v1/workspaces/{workspace}/operations/services.logs", { workspace, name, lines: FIRST_LINES }, { signal });
          const part = answer.result as unknown as Part;
          const isFirst = !places;
          places = part.places;
          setText((old) => (isFirst ? part.text : old + part.text).slice(-MOST_LETTERS));
          setLoaded(true);
          setError(undefined);
          await untilVisible(signal);
        } catch (problem) {
          if (signal.aborted) return;
          if (problem instanceof ApiError) setError(problem);
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLISECONDS));
        }
      }
    };
    void read();
    return () => controller.abort();
  }, [workspace, name]);
  return { text, isLoaded, error };
}

function untilVisible(signal: AbortSignal): Promise<void> {
  if (document.visibilityState === "visible") return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("visibilitychange", () => resolve(), { once: true, signal }));
}

export function LogsPart({ workspace, name }: { workspace: string; name: string }): JSX.Element {
  const { text, isLoaded, error } = useLogs(workspace, name);
  const [isFollowing, setFollowing] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (isFollowing && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, isFollowing]);
  return (
    <section class="stack-small" aria-label="Logs">
      <div class="row">
        <h2>Logs</h2>
        <span class="spacer" />
        <label class="row small">
          <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.currentTarget.checked)} />
          Follow
        </label>
      </div>
      {error && <ErrorBox error={error} />}
      <pre
        ref={box}
        class="log"
        tabIndex={0}
        aria-label="Log of the service"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          setFollowing(scrollHeight - scrollTop - clientHeight < 30);
        }}
      >
        {text || (isLoaded ? "Nothing is written yet." : "Loading…")}
      </pre>
    </section>
  );
}
