// StatefulWorkflows: their states as a diagram, the path taken, timers, actions, and a button for a signal.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { ask, listAllowed, tell } from "./api";
import { activeIds, apart, drawingOf, eventsOf, valueOf, valueText } from "./diagram";
import type { Drawing, Node } from "./diagram";
import { clean, count, distance } from "./format";
import { Badge, Conditions, Fact, Name, Only, ReadyBadge, Table, Trouble, Waiting, part, useLoaded, useSession } from "./parts";
import { History } from "./guest";

const BASE = "/apis/workflows.example.com/v1";

export function WorkflowsPage() {
  const session = useSession();
  const found = useLoaded((signal) => listAllowed(BASE, "statefulworkflows", session.namespace, signal), [], 10_000);
  return (
    <>
      <h1>Workflows</h1>
      <Waiting of={found} />
      <Trouble title="The workflows cannot be listed." words={found.problem} />
      <Only namespaces={found.value?.only} />
      {found.value?.items.length === 0 && <p class="quiet">There are no StatefulWorkflows that you may list.</p>}
      {found.value && found.value.items.length > 0 && (
        <Table label="Workflows" heads={["Workflow", "State", "Ready", "Transitions", "Timers", "Actions", "In this state since"]} numbers={[3, 4, 5]}>
          {found.value.items.map((one) => (
            <tr key={one.metadata.uid}>
              <th scope="row"><a href={`#/workflow/${part(one.metadata.namespace)}/${part(one.metadata.name)}`}><Name of={`${one.metadata.namespace}/${one.metadata.name}`} /></a></th>
              <td><Name of={valueText(one.status?.value ?? "–")} /></td>
              <td><ReadyBadge object={one} /></td>
              <td class="number">{count(one.status?.transitions)}</td>
              <td class="number">{count(one.status?.timers?.length ?? 0)}</td>
              <td class="number">{count(one.status?.outbox?.length ?? 0)}</td>
              <td>{distance(one.status?.enteredAt, Date.now())}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

// An arrow between two boxes: from the nearer sides, curved, so that there and back do not coincide.
function arrow(from: Node, to: Node): { path: string; x: number; y: number } {
  const middle = (one: Node) => ({ x: one.x + one.width / 2, y: one.y + one.height / 2 });
  const start = middle(from);
  const end = middle(to);
  if (from.id === to.id) {
    const x = from.x + from.width;
    return { path: `M${x} ${start.y - 8} C${x + 28} ${start.y - 22} ${x + 28} ${start.y + 22} ${x} ${start.y + 8}`, x: x + 24, y: start.y };
  }
  if (to.y >= from.y + from.height) {
    const a = { x: start.x + Math.sign(end.x - start.x) * Math.min(20, from.width / 4), y: from.y + from.height };
    const b = { x: end.x, y: to.y };
    const bend = (b.y - a.y) / 2;
    return { path: `M${a.x} ${a.y} C${a.x} ${a.y + bend} ${b.x} ${b.y - bend} ${b.x} ${b.y}`, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  }
  // Beside: from side to side.
  if (to.x >= from.x + from.width) {
    const a = from.x + from.width;
    const bend = (to.x - a) / 2;
    return { path: `M${a} ${start.y} C${a + bend} ${start.y} ${to.x - bend} ${end.y} ${to.x} ${end.y}`, x: a + bend, y: (start.y + end.y) / 2 };
  }
  // Up: around the right side.
  const x = Math.max(from.x + from.width, to.x + to.width) + 22 + Math.min(60, Math.abs(start.y - end.y) / 8);
  return { path: `M${from.x + from.width} ${start.y} C${x} ${start.y} ${x} ${end.y} ${to.x + to.width} ${end.y}`, x: x - 8, y: (start.y + end.y) / 2 };
}

const short = (text: string) => (text.length > 26 ? `${clean(text.slice(0, 25))}…` : clean(text));

function Diagram({ drawing, active, visited, steps }: { drawing: Drawing; active: Set<string>; visited: Set<string>; steps: Set<string> }) {
  const byId = new Map(drawing.nodes.map((node) => [node.id, node]));
  const names = drawing.nodes.filter((node) => active.has(node.id) && !node.children.length).map((node) => clean(node.name, 60));
  const boxes = drawing.nodes.filter((node) => node.parent !== undefined);
  const arrows = drawing.edges.flatMap((edge) => {
    const from = byId.get(edge.from);
    const to = byId.get(edge.to);
    if (!from || !to || from.parent === undefined || to.parent === undefined) return [];
    return [{ ...arrow(from, to), isTaken: steps.has(`${from.id} ${to.id}`), label: short(edge.events.join(", ")) }];
  });
  const width = Math.max(drawing.width + 90, ...arrows.map(({ x, label }) => x + 4 * label.length + 8));
  const places = apart(arrows.map(({ x, y, label }) => ({ x, y, width: 8 * label.length })), 15);
  return (
    <div class="scroll diagram" role="region" aria-label="State diagram" tabIndex={0}>
      <svg width={width} height={drawing.height} viewBox={`0 0 ${width} ${drawing.height}`} role="img" aria-label={`State diagram; it is in ${names.join(", ") || "no state"}. The tables below have states and transitions.`}>
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" class="tip" /></marker>
          <marker id="tip-taken" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" class="tip taken" /></marker>
        </defs>
        {boxes.map((node) => (
          <g key={node.id} class={`state${active.has(node.id) ? " active" : ""}${visited.has(node.id) ? " visited" : ""}${node.children.length ? " parent" : ""}`}>
            <rect x={node.x} y={node.y} width={node.width} height={node.height} rx="7" />
            {node.type === "final" && <rect class="final" x={node.x + 3} y={node.y + 3} width={node.width - 6} height={node.height - 6} rx="5" />}
            <text x={node.children.length ? node.x + 12 : node.x + node.width / 2} y={node.children.length ? node.y + 18 : node.y + node.height / 2 + 4.5} text-anchor={node.children.length ? "start" : "middle"}>
              {short(node.name)}
            </text>
          </g>
        ))}
        {arrows.map((one, at) => (
          <path key={at} class={one.isTaken ? "edge taken" : "edge"} d={one.path} marker-end={one.isTaken ? "url(#tip-taken)" : "url(#tip)"} />
        ))}
        {arrows.map((one, at) => (
          <text key={at} class={one.isTaken ? "label taken" : "label"} x={one.x} y={places[at] + 4} text-anchor="middle">{one.label}</text>
        ))}
      </svg>
    </div>
  );
}

function Signal({ namespace, name, events }: { namespace: string; name: string; events: string[] }) {
  const session = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  const [event, setEvent] = useState("");
  const [data, setData] = useState("");
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [sent, setSent] = useState<string>();
  if (!session.allowsActions) return <p class="quiet">The console is read-only. With <code>--allow-actions</code> it can send a signal, with your rights.</p>;
  const check = (submit: Event) => {
    submit.preventDefault();
    setSent(undefined);
    if (data.trim()) {
      try {
        const value = JSON.parse(data);
        if (!value || typeof value !== "object" || Array.isArray(value)) throw new Error("it is not an object");
      } catch (error) {
        return setProblem(`The data must be a JSON object: ${error instanceof Error ? error.message : error}`);
      }
    }
    setProblem(undefined);
    dialog.current!.showModal();
  };
  const send = async () => {
    setSending(true);
    try {
      const answer = await tell("signal", { namespace, name, event, data: data.trim() });
      setSent(`Sent ${event}, with the id ${answer.id}.`);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setSending(false);
    dialog.current?.close();
  };
  return (
    <>
      <form class="tools" onSubmit={check}>
        <label>Event <input list="events" value={event} required onInput={(input) => setEvent(input.currentTarget.value)} /></label>
        <datalist id="events">{events.map((one) => <option key={one} value={clean(one, 100)} />)}</datalist>
        <label class="wide">Data, a JSON object <input value={data} placeholder='{"by": "me"}' onInput={(input) => setData(input.currentTarget.value)} /></label>
        <button type="submit">Send…</button>
      </form>
      {events.length > 0 && <p class="quiet">It takes now: {events.map((one, at) => <>{at > 0 && ", "}<button type="button" class="link" onClick={() => setEvent(one)}><Name of={one} /></button></>)}</p>}
      <Trouble title="The signal was not sent." words={problem} />
      {sent && <p role="status"><Badge kind="good">sent</Badge> <Name of={sent} /></p>}
      <dialog ref={dialog} aria-labelledby="ask-title">
        <h2 id="ask-title">Send a signal?</h2>
        <p>The workflow <Name of={`${namespace}/${name}`} /> gets the event <strong><Name of={event} /></strong>{data.trim() && <> with <code><Name of={data.trim()} /></code></>}. You send it as the user of your kubeconfig, at <Name of={session.server} />. It cannot be taken back.</p>
        <div class="tools">
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="button" class="act" disabled={isSending} onClick={send}>Send {clean(event, 40)}</button>
        </div>
      </dialog>
    </>
  );
}

// The states and steps of the ledger's history.
function pathOf(drawing: Drawing, history: any[]): { visited: Set<string>; steps: Set<string> } {
  const visited = new Set<string>();
  const steps = new Set<string>();
  const leaves = (value: unknown) => [...activeIds(drawing, valueOf(value))];
  for (const one of history) {
    const from = one.from ? leaves(one.from) : [];
    const to = leaves(one.to);
    for (const id of [...from, ...to]) visited.add(id);
    for (const left of from) for (const entered of to) steps.add(`${left} ${entered}`);
  }
  return { visited, steps };
}

export function WorkflowPage({ namespace, name }: { namespace: string; name: string }) {
  const object = useLoaded((signal) => ask(`cluster${BASE}/namespaces/${part(namespace)}/statefulworkflows/${part(name)}`, {}, signal), [namespace, name], 5_000);
  const sha256 = object.value?.status?.revision?.sha256;
  const machine = useLoaded((signal) => (sha256 ? ask("machine", { namespace, name }, signal) : Promise.resolve(undefined)), [namespace, name, sha256]);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const drawing = useMemo(() => (machine.value ? drawingOf(machine.value.definition) : undefined), [machine.value]);
  const status = object.value?.status ?? {};
  const history: any[] = status.history ?? [];
  const active = drawing ? activeIds(drawing, valueOf(status.value)) : new Set<string>();
  return (
    <>
      <p class="path"><a href="#/workflows">Workflows</a> / <Name of={namespace} /></p>
      <h1><Name of={name} /></h1>
      <Waiting of={object} />
      <Trouble title="The workflow cannot be read." words={object.problem} />
      {object.value && (
        <>
          <dl class="facts">
            <Fact title="State"><strong><Name of={valueText(status.value ?? "not begun")} /></strong></Fact>
            <Fact title="Since">{distance(status.enteredAt, now)}</Fact>
            <Fact title="Transitions">{count(status.transitions ?? 0)}</Fact>
            <Fact title="Started">{distance(status.startedAt, now)}</Fact>
            {status.finishedAt && <Fact title="Ended">{distance(status.finishedAt, now)}</Fact>}
            <Fact title="Machine"><code>{clean(sha256 ?? "").slice(0, 12) || "–"}</code></Fact>
          </dl>
          {status.failure && <Trouble title="It failed:" words={status.failure} />}
          <h2>Diagram</h2>
          <Waiting of={machine} />
          <Trouble title="The machine cannot be drawn." words={machine.problem} />
          {drawing && <Diagram drawing={drawing} active={active} {...pathOf(drawing, history)} />}
          {drawing && <p class="quiet">Filled: where it is. Thick: the path of the last {history.length} transitions. A double line ends it.</p>}
          {(status.actors ?? []).length > 0 && (
            <Table label="Actors" heads={["Actor", "State", "Status"]}>
              {status.actors.map((one: any) => <tr key={one.id}><th scope="row"><Name of={one.id} /></th><td><Name of={valueText(one.value)} /></td><td><Name of={one.status || "running"} /></td></tr>)}
            </Table>
          )}
          <h2>Timers</h2>
          {(status.timers ?? []).length === 0 ? <p class="quiet">None is running.</p> : (
            <Table label="Timers" heads={["Due", "Event", "Timer"]}>
              {status.timers.map((one: any) => <tr key={one.id}><td>{distance(one.due, now)}</td><td><Name of={one.event?.type} /></td><td><Name of={one.id} /></td></tr>)}
            </Table>
          )}
          <h2>Actions under way</h2>
          {(status.outbox ?? []).length === 0 ? <p class="quiet">None.</p> : (
            <Table label="Actions" heads={["Action", "Asked for", "Deadline", "Failed attempts", "Last error"]} numbers={[3]}>
              {status.outbox.map((one: any) => (
                <tr key={one.id}>
                  <th scope="row"><Name of={one.type} /></th><td>{distance(one.requestedAt, now)}</td><td>{distance(one.deadline, now)}</td><td class="number">{count(one.attempts ?? 0)}</td><td class="long"><Name of={one.lastError} most={400} /></td>
                </tr>
              ))}
            </Table>
          )}
          <h2>Path</h2>
          {history.length === 0 ? <p class="quiet">It has made no transition.</p> : (
            <Table label="Path" heads={["When", "Event", "From", "To", "Actions"]}>
              {[...history].reverse().map((one) => (
                <tr key={one.sequence}>
                  <td>{distance(one.time, now)}</td><th scope="row"><Name of={one.event || "(start)"} /></th><td><Name of={valueText(one.from)} /></td><td><Name of={valueText(one.to)} /></td>
                  <td><Name of={(one.actions ?? []).map((action: any) => (typeof action === "string" ? action : (action?.type ?? JSON.stringify(action)))).join(", ")} most={300} /></td>
                </tr>
              ))}
            </Table>
          )}
          <h2>Signal</h2>
          <Signal namespace={namespace} name={name} events={drawing && machine.value ? eventsOf(drawing, machine.value.definition, active) : []} />
          <h2>Conditions</h2>
          <Conditions object={object.value} />
        </>
      )}
      <History namespace={namespace} name={`workflow/${name}`} />
    </>
  );
}
