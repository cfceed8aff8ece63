// Small parts of the pages.
import { createContext } from "preact";
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

import { Problem } from "./api";
import { clean } from "./format";

export interface Session {
  server: string;
  context: string;
  namespace: string;
  version: string;
  allowsActions: boolean;
}
export const SessionContext = createContext<Session>({ server: "", context: "", namespace: "default", version: "", allowsActions: false });
export const useSession = () => useContext(SessionContext);

// A text of a stranger: cleaned, and isolated from the direction of its surroundings.
export const Name = ({ of, most = 120 }: { of: unknown; most?: number }) => (
  <bdi class="name" title={clean(of, 1000)}>
    {clean(of, most)}
  </bdi>
);

export interface Loaded<T> {
  value?: T;
  problem?: string;
  status?: number;
  isLoading: boolean;
  again: () => void;
}

// Loads once, and again every `everyMs` while the tab can be seen; a hidden one asks nothing, so that the console can end
// when nobody uses it. The last value stays while a load is under way or has failed.
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, inputs: unknown[], everyMs?: number): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "again">>({ isLoading: true });
  const [round, setRound] = useState(0);
  const before = useRef(inputs);
  useEffect(() => {
    const controller = new AbortController();
    let timer: number | undefined;
    if (before.current.some((one, at) => one !== inputs[at])) setState({ isLoading: true });
    before.current = inputs;
    const run = async () => {
      try {
        const value = await load(controller.signal);
        if (controller.signal.aborted) return;
        setState({ value, isLoading: false });
      } catch (error) {
        if (controller.signal.aborted) return;
        const words = error instanceof Error ? error.message : String(error);
        setState((old) => ({ value: old.value, problem: words, status: error instanceof Problem ? error.status : undefined, isLoading: false }));
      }
      next();
    };
    const next = () => {
      if (everyMs === undefined || controller.signal.aborted) return;
      timer = window.setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", onShown, { once: true, signal: controller.signal }) : void run()), everyMs);
    };
    const onShown = () => void run();
    void run();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [...inputs, round]);
  return { ...state, again: () => setRound((old) => old + 1) };
}

export const Trouble = ({ words, title }: { words?: string; title?: string }) =>
  words ? (
    <div class="trouble" role="alert">
      {title && <strong>{title} </strong>}
      <span>{clean(words, 1000)}</span>
    </div>
  ) : null;

export const Only = ({ namespaces }: { namespaces?: string[] }) =>
  namespaces ? <p class="quiet">You may not list them in all namespaces; shown: <Name of={namespaces.join(", ")} most={400} /></p> : null;

export const Waiting = ({ of }: { of: Loaded<unknown> }) => (of.isLoading && !of.value ? <p class="quiet" role="status">Loading…</p> : null);

export const Badge = ({ kind, children }: { kind: string; children: ComponentChildren }) => <span class={`badge ${kind}`}>{children}</span>;

export function ReadyBadge({ object }: { object: any }) {
  const ready = (object?.status?.conditions ?? []).find((one: any) => one.type === "Ready" || one.type === "Available");
  if (!ready) return <Badge kind="waiting">unknown</Badge>;
  if (ready.status === "True") return <Badge kind="good">ready</Badge>;
  return <Badge kind={ready.status === "False" ? "failing" : "waiting"}>{clean(ready.reason || "not ready", 40)}</Badge>;
}

// Conditions, problems first.
// `of`: whose they are, where a page has several.
export function Conditions({ object, of }: { object: any; of?: string }) {
  const all: any[] = object?.status?.conditions ?? [];
  if (!all.length) return null;
  return (
    <Table label={of ? `Conditions of ${clean(of, 80)}` : "Conditions"} heads={["Condition", "Status", "Reason", "Message"]}>
      {all.map((one) => (
        <tr key={one.type}>
          <th scope="row"><Name of={one.type} /></th>
          <td><Name of={one.status} /></td>
          <td><Name of={one.reason} /></td>
          <td class="long"><Name of={one.message} most={600} /></td>
        </tr>
      ))}
    </Table>
  );
}

// Wide tables scroll by themselves, also by keyboard. `numbers`: the columns whose cells are of class "number".
export const Table = ({ label, heads, numbers = [], children }: { label: string; heads: ComponentChildren[]; numbers?: number[]; children: ComponentChildren }) => (
  <div class="scroll" role="region" aria-label={label} tabIndex={0}>
    <table>
      <thead>
        <tr>
          {heads.map((head, at) => (
            <th scope="col" key={at} class={numbers.includes(at) ? "number" : undefined}>{head}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);

export const Fact = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <div class="fact">
    <dt>{title}</dt>
    <dd>{children}</dd>
  </div>
);

export const part = encodeURIComponent;
export const guestLink = (namespace: string, name: string) => `#/operator/${part(namespace)}/${part(name)}`;
export function whyLink(object: { group?: string; kind?: string; namespace?: string; name?: string }): string | undefined {
  if (!object?.kind || !object.name || object.name === "(withheld)") return undefined;
  return `#/why/${part(object.group ? `${object.kind}.${object.group}` : object.kind)}/${part(object.name)}/${part(object.namespace ?? "")}`;
}

// The page's colours, for canvases: they follow the theme.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";
}
export function useTheme(): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const turn = () => setRound((old) => old + 1);
    media.addEventListener("change", turn);
    const observer = new MutationObserver(turn);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      media.removeEventListener("change", turn);
      observer.disconnect();
    };
  }, []);
  return round;
}
export function useWidth(): [(element: HTMLElement | null) => void, number] {
  const [width, setWidth] = useState(0);
  const observer = useRef<ResizeObserver>();
  const ref = useRef((element: HTMLElement | null) => {
    observer.current?.disconnect();
    if (!element) return;
    observer.current = new ResizeObserver((entries) => setWidth(Math.floor(entries[0].contentRect.width)));
    observer.current.observe(element);
  });
  return [ref.current, width];
}
