// The page of `hangar console`. Whatever a cluster or a guest says is text in it: nothing sets HTML, and the page's
// Content-Security-Policy has Trusted Types without a policy, so nothing could.
import "uplot/dist/uPlot.min.css";
import "./console.css";

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { ask, open } from "./api";
import { clean } from "./format";
import { History, OperatorPage } from "./guest";
import { MapPage } from "./map";
import { NodesPage } from "./nodes";
import { Name, SessionContext, Trouble } from "./parts";
import type { Session } from "./parts";
import { ReleasesPage } from "./releases";
import { TenantsPage } from "./tenants";
import { WhyPage } from "./why";
import { WorkflowPage, WorkflowsPage } from "./workflows";

const PLACES = [
  ["#/", "Operators"],
  ["#/releases", "Airways"],
  ["#/workflows", "Workflows"],
  ["#/nodes", "Nodes"],
  ["#/tenants", "Tenants"],
  ["#/why", "Why"],
];

function segmentsOf(hash: string): string[] {
  return hash.replace(/^#\/?/, "").split("/").map((one) => {
    try {
      return decodeURIComponent(one);
    } catch {
      return one;
    }
  });
}

function Page({ segments }: { segments: string[] }) {
  const [page, first, second, third] = segments;
  switch (page) {
    case "":
      return <MapPage />;
    case "operator":
      return <OperatorPage key={`${first}/${second}`} namespace={first} name={second} />;
    case "releases":
      return <ReleasesPage />;
    case "turns":
      return <><h1><Name of={second} /></h1><History key={`${first}/${second}`} namespace={first} name={second} /></>;
    case "workflows":
      return <WorkflowsPage />;
    case "workflow":
      return <WorkflowPage key={`${first}/${second}`} namespace={first} name={second} />;
    case "nodes":
      return <NodesPage />;
    case "tenants":
      return <TenantsPage />;
    case "why":
      return <WhyPage kind={first} name={second} namespace={third} />;
    default:
      return <p>There is no such page. <a href="#/">Operators</a></p>;
  }
}

const placeOf = (page: string) => ({ "": "#/", operator: "#/", turns: "#/releases", releases: "#/releases", workflow: "#/workflows", workflows: "#/workflows", nodes: "#/nodes", tenants: "#/tenants", why: "#/why" })[page];

const THEMES = ["auto", "light", "dark"] as const;
function ThemeChoice() {
  const [theme, setTheme] = useState<string>(() => localStorage.getItem("hangar-theme") ?? "auto");
  useEffect(() => {
    if (theme === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", theme);
    localStorage.setItem("hangar-theme", theme);
  }, [theme]);
  return (
    <label class="theme">
      Theme{" "}
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
        {THEMES.map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
    </label>
  );
}

function App() {
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState<string>();
  const [hash, setHash] = useState("");
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    const begin = async () => {
      try {
        await open();
        setHash(location.hash);
        setSession(await ask("state"));
      } catch (error) {
        setProblem(error instanceof Error ? error.message : String(error));
      }
    };
    void begin();
    const onHash = () => (/^#(key|open)=/.test(location.hash) ? location.reload() : setHash(location.hash));
    addEventListener("hashchange", onHash);
    return () => removeEventListener("hashchange", onHash);
  }, []);
  const segments = segmentsOf(hash);
  useEffect(() => {
    if (!session) return;
    document.title = `${clean(segments.filter(Boolean).join(" ") || "operators", 80)} – hangar`;
    // Readers of the screen begin at the new page.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [hash, session]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the page</a>
      <header>
        <a class="brand" href="#/">hangar</a>
        {session && (
          <nav aria-label="Pages">
            {PLACES.map(([href, title]) => <a key={href} href={href} aria-current={placeOf(segments[0]) === href ? "page" : undefined}>{title}</a>)}
          </nav>
        )}
        <ThemeChoice />
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        <Trouble words={problem} />
        {session && <SessionContext.Provider value={session}><Page segments={segments} /></SessionContext.Provider>}
        {!session && !problem && <p class="quiet" role="status">Connecting…</p>}
      </main>
      {session && (
        <footer class="quiet">
          hangar {clean(session.version)} at <Name of={session.server} />{session.context && <>, context <Name of={session.context} /></>}, {session.allowsActions ? "actions are allowed" : "read-only"}
        </footer>
      )}
    </>
  );
}

const theme = localStorage.getItem("hangar-theme");
if (theme === "light" || theme === "dark") document.documentElement.setAttribute("data-theme", theme);
const place = document.getElementById("page")!;
place.textContent = "";
render(<App />, place);
