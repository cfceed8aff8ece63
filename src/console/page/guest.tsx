// One operator: its turns, memory, watches, output, and the way back from what it wrote.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import { ask } from "./api";
import { bodyOf } from "./body";
import { bytes, clean, cleanLines, clock, count, distance, micros } from "./format";
import { stateOf } from "./fleet";
import { openWatches } from "./watches";
import { Badge, Conditions, Fact, Name, Table, Trouble, Waiting, colour, useLoaded, useTheme, useWidth, whyLink } from "./parts";

function ofObject(object: any): string {
  const kind = object?.kind ? (object.group ? `${object.kind}.${object.group}` : object.kind) : "";
  return [kind, [object?.namespace, object?.name].filter(Boolean).join("/")].filter(Boolean).join(" ");
}

// Steps of an axis of bytes.
const POWERS = Array.from({ length: 42 }, (_, power) => 2 ** power);

function Chart({ turns }: { turns: any[] }) {
  const [box, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  useEffect(() => {
    if (!place.current || width < 50 || !turns.length) return;
    const sorted = [...turns].sort((left, right) => Date.parse(left.arrived) - Date.parse(right.arrived));
    const at = (seconds: number | null) => (seconds == null ? "–" : clock(new Date(seconds * 1000).toISOString()));
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui" };
    const chart = new uPlot(
      {
        width,
        height: 220,
        cursor: { drag: { x: false, y: false } },
        legend: { live: width > 500 },
        scales: { ms: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] }, memory: { range: (_, __, most) => [0, Math.max(1024, most * 1.1)] } },
        axes: [
          { ...axis, space: 80, size: 34, values: (_, values) => values.map((one) => at(one).slice(0, 8)) },
          { ...axis, scale: "ms", size: 64, values: (_, values) => values.map((one) => micros(one * 1000)) },
          { ...axis, scale: "memory", side: 1, size: 74, grid: { show: false }, incrs: POWERS, values: (_, values) => values.map((one) => bytes(one)) },
        ],
        series: [
          { value: (_, one) => at(one) },
          { label: "ran", scale: "ms", stroke: colour("series-1"), width: 1.5, points: { show: true, size: 6 }, value: (_, one) => (one == null ? "–" : micros(one * 1000)) },
          { label: "CPU", scale: "ms", stroke: colour("series-2"), width: 1.5, dash: [5, 3], points: { show: true, size: 5 }, value: (_, one) => (one == null ? "–" : micros(one * 1000)) },
          { label: "memory", scale: "memory", stroke: colour("series-3"), fill: colour("series-3-fill"), width: 1.5, points: { show: false }, value: (_, one) => bytes(one ?? undefined) },
        ],
      },
      [
        sorted.map((one) => Date.parse(one.arrived) / 1000),
        sorted.map((one) => one.ranMicroseconds / 1000),
        sorted.map((one) => one.cpuMicroseconds / 1000),
        sorted.map((one) => one.memoryBytes),
      ],
      place.current,
    );
    return () => chart.destroy();
  }, [turns, width, theme]);
  return (
    <div ref={box} class="chart" role="img" aria-label={`Duration, CPU and memory of the last ${turns.length} turns; the table below has the numbers`}>
      <div ref={place} />
    </div>
  );
}

function Cause({ cause }: { cause: any }) {
  const link = whyLink(cause.object ?? {});
  const words = cause.object ? ofObject(cause.object) : cause.event || (cause.bytes ? `${bytes(cause.bytes)}` : `number ${cause.id}`);
  return (
    <li>
      ← {clean(cause.cause, 40)} {link ? <a href={link}><Name of={words} /></a> : <Name of={words} />}
    </li>
  );
}

const isWrite = (request: any) => ["create", "update", "patch", "apply", "delete", "deletecollection"].includes(request.verb);

function RecordedBody({ request, of }: { request: any; of: string }) {
  const body = bodyOf(request);
  if (!body) return null;
  if (body.text === undefined) return <div class="quiet">{body.words}</div>;
  return (
    <details class="body">
      <summary aria-label={`Body of ${of}`}>Body</summary>
      <pre class="log" tabIndex={0} role="region" aria-label={`Body of ${of}`}>{body.text}</pre>
    </details>
  );
}

function Request({ request }: { request: any }) {
  const link = isWrite(request) ? whyLink(request.object ?? {}) : undefined;
  const what = request.object?.name || request.object?.kind ? ofObject(request.object) : request.resource || request.path;
  const isRefused = request.status >= 400;
  return (
    <li class={isWrite(request) ? "write" : undefined}>
      → {clean(request.verb, 20)} <Name of={[request.resource, request.subresource].filter(Boolean).join("/")} /> <Name of={what} />
      {request.dryRun && " (dry run)"}: <span class={isRefused ? "bad" : undefined}>{request.status ? `${request.status}` : "no answer is recorded"}</span>
      {request.tookMicroseconds !== undefined && ` in ${micros(request.tookMicroseconds)}`}
      {link && <> · <a href={link} aria-label={`Why was ${clean(what)} written?`}>why?</a></>}
      <RecordedBody request={request} of={`request ${request.id}, ${clean(request.verb, 20)} ${clean(what, 120)}`} />
    </li>
  );
}

export function Turns({ turns, now }: { turns: any[]; now: number }) {
  const [open, setOpen] = useState<Set<string>>(new Set());
  const longest = turns.reduce((most, one) => Math.max(most, one.ranMicroseconds + one.waitedMicroseconds), 1);
  return (
    <ol class="turns">
      {turns.map((turn) => {
        const id = `${turn.host}-${turn.instance}-${turn.turn}`;
        const isOpen = open.has(id);
        const width = (value: number) => `${(100 * value) / longest}%`;
        return (
          <li key={id}>
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => setOpen((old) => { const next = new Set(old); if (!next.delete(id)) next.add(id); return next; })}
            >
              <span class="when" title={clean(turn.arrived)}>{clock(turn.arrived)}</span>
              <span class="bar" aria-hidden="true">
                <i class="waited" style={{ width: width(turn.waitedMicroseconds) }} />
                <i class="resume" style={{ width: width(turn.resumeMicroseconds) }} />
                <i class="ran" style={{ width: width(Math.max(0, turn.ranMicroseconds - turn.resumeMicroseconds)) }} />
              </span>
              <span class="took">{micros(turn.ranMicroseconds)}</span>
              <span class="what">
                {turn.outcome === "failed" && <Badge kind="failing">failed</Badge>} {turn.causes.length + (turn.causesLeftOut ?? 0)} cause{turn.causes.length === 1 ? "" : "s"}, {turn.requests.length} request{turn.requests.length === 1 ? "" : "s"}
                {turn.requests.some(isWrite) ? ", wrote" : ""}
              </span>
            </button>
            {isOpen && (
              <div class="turn">
                <p class="quiet">
                  Turn {turn.turn}, {distance(turn.arrived, now)}: waited {micros(turn.waitedMicroseconds)}, resumed in {micros(turn.resumeMicroseconds)}, ran {micros(turn.ranMicroseconds)}, CPU{" "}
                  {micros(turn.cpuMicroseconds)}, memory {bytes(turn.memoryBytes)}
                  {turn.suspendMicroseconds !== undefined && `, then asleep in ${micros(turn.suspendMicroseconds)} (${bytes(turn.diskBytes)})`}
                </p>
                {turn.module && <p class="quiet">Module <code>sha256:{clean(turn.module).slice(0, 12)}</code></p>}
                <ul>
                  {turn.causes.length === 0 && <li>← it was started</li>}
                  {turn.causes.map((cause: any, at: number) => <Cause key={at} cause={cause} />)}
                  {turn.causesLeftOut > 0 && <li>← {turn.causesLeftOut} more, which are not recorded</li>}
                  {turn.requests.map((request: any, at: number) => <Request key={at} request={request} />)}
                </ul>
              </div>
            )}
          </li>
        );
      })}
    </ol>
  );
}

// What it watches and lists, as far as the turns shown tell.
function Watches({ turns }: { turns: any[] }) {
  const seen = new Map<string, { verbs: Set<string>; times: number; last: string }>();
  for (const turn of turns) {
    for (const request of turn.requests) {
      if (!["watch", "list"].includes(request.verb)) continue;
      const key = `${request.resource || request.path}${request.object?.namespace ? ` in ${request.object.namespace}` : ""}`;
      const one = seen.get(key) ?? { verbs: new Set(), times: 0, last: "" };
      one.verbs.add(request.verb);
      one.times++;
      if (request.at > one.last) one.last = request.at;
      seen.set(key, one);
    }
  }
  const events = new Map<string, number>();
  for (const turn of turns) for (const cause of turn.causes) if (cause.object?.kind) {
    const key = cause.object.group ? `${cause.object.kind}.${cause.object.group}` : cause.object.kind;
    events.set(key, (events.get(key) ?? 0) + 1);
  }
  if (!seen.size && !events.size) return <p class="quiet">The turns shown have no watch and no list.</p>;
  return (
    <div class="columns">
      {seen.size > 0 && (
        <Table label="Watches and lists" heads={["Resource", "By", "Times"]} numbers={[2]}>
          {[...seen].map(([key, one]) => <tr key={key}><th scope="row"><Name of={key} /></th><td>{[...one.verbs].join(", ")}</td><td class="number">{one.times}</td></tr>)}
        </Table>
      )}
      {events.size > 0 && (
        <Table label="Events" heads={["Woken by", "Events"]} numbers={[1]}>
          {[...events].sort((left, right) => right[1] - left[1]).map(([key, times]) => <tr key={key}><th scope="row"><Name of={key} /></th><td class="number">{count(times)}</td></tr>)}
        </Table>
      )}
    </div>
  );
}

// For the answer the host reads all of its records, so it is asked only on demand.
function OpenWatches({ namespace, name }: { namespace: string; name: string }) {
  const [isOpen, setOpen] = useState(false);
  const found = useLoaded((signal) => (isOpen ? ask("uses", { namespace, name }, signal) : Promise.resolve(undefined)), [isOpen, namespace, name]);
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>Show the open watches</button>;
  const { watches, sharers, sharersWithheld } = openWatches(found.value ?? {});
  return (
    <>
      <Waiting of={found} />
      <Trouble title="The open watches cannot be shown." words={found.problem} />
      {found.value && (watches.length > 0 ? (
        <Table label="Open watches" heads={["Open watch", "Namespace"]}>
          {watches.map((one) => <tr key={`${one.resource} ${one.place}`}><th scope="row"><Name of={one.resource} /></th><td>{one.place ? <Name of={one.place} /> : "all, or none"}</td></tr>)}
        </Table>
      ) : <p class="quiet">No watch of it is open.</p>)}
      {(sharers.length > 0 || sharersWithheld > 0) && (
        <p class="quiet">
          A watch may be another guest's with the same ServiceAccount: {sharers.map((one) => clean(one)).join(", ")}
          {sharersWithheld > 0 && `${sharers.length ? " and " : ""}${count(sharersWithheld)} that you may not see`}.
        </p>
      )}
      <button type="button" onClick={found.again}>Look again</button>
    </>
  );
}

export function Logs({ namespace, name, resource }: { namespace: string; name: string; resource?: string }) {
  const [isOpen, setOpen] = useState(false);
  const logs = useLoaded((signal) => (isOpen ? ask("logs", { namespace, name, resource, lines: 200 }, signal) : Promise.resolve(undefined)), [isOpen, namespace, name]);
  if (!isOpen) return <button type="button" onClick={() => setOpen(true)}>Read the last 200 lines</button>;
  return (
    <>
      <Waiting of={logs} />
      <Trouble title="The output cannot be read." words={logs.problem} />
      {logs.value && (logs.value.text ? <pre class="log" tabIndex={0} role="region" aria-label="Output">{cleanLines(logs.value.text)}</pre> : <p class="quiet">It has printed nothing.</p>)}
      <button type="button" onClick={logs.again}>Read again</button>
    </>
  );
}

export function History({ namespace, name, isOperator }: { namespace: string; name: string; isOperator?: boolean }) {
  const [slowest, setSlowest] = useState(false);
  const found = useLoaded((signal) => ask("turns", { namespace, name, turns: 100, slowest: slowest || undefined }, signal), [namespace, name, slowest], 10_000);
  const turns: any[] = found.value ? (slowest ? found.value.turns : [...found.value.turns].reverse()) : [];
  return (
    <>
      <h2>Turns</h2>
      <Waiting of={found} />
      <Trouble title="The turns cannot be shown." words={found.problem} />
      {turns.length > 0 && (
        <>
          <Chart turns={turns} />
          <fieldset class="choice">
            <legend>Order</legend>
            <label><input type="radio" name="order" checked={!slowest} onChange={() => setSlowest(false)} /><span>Latest</span></label>
            <label><input type="radio" name="order" checked={slowest} onChange={() => setSlowest(true)} /><span>Slowest</span></label>
          </fieldset>
          <div class="legend">
            <span><i class="swatch waited" /> waited for its turn</span>
            <span><i class="swatch resume" /> resumed</span>
            <span><i class="swatch ran" /> ran</span>
          </div>
          <Turns turns={turns} now={Date.now()} />
          <h2>What it watches</h2>
          <Watches turns={turns} />
          {isOperator && <OpenWatches namespace={namespace} name={name} />}
        </>
      )}
    </>
  );
}

export function OperatorPage({ namespace, name }: { namespace: string; name: string }) {
  const object = useLoaded((signal) => ask(`cluster/apis/hangar.dev/v1alpha1/namespaces/${encodeURIComponent(namespace)}/operators/${encodeURIComponent(name)}`, {}, signal), [namespace, name], 10_000);
  const status = object.value?.status ?? {};
  const now = Date.now();
  return (
    <>
      <p class="path"><a href="#/">Operators</a> / <Name of={namespace} /></p>
      <h1><Name of={name} /></h1>
      <Waiting of={object} />
      <Trouble title="The operator cannot be read." words={object.problem} />
      {object.value && (
        <>
          <dl class="facts">
            <Fact title="Phase"><Badge kind={stateOf({ phase: status.phase, ready: "" })}>{clean(status.phase ?? "Pending", 30)}</Badge></Fact>
            <Fact title="Memory">{bytes(status.residentBytes ?? 0)}</Fact>
            <Fact title="On disk">{bytes(status.onDiskBytes ?? 0)}</Fact>
            <Fact title="Wakes">{count(status.wakes ?? 0)}</Fact>
            <Fact title="Last wake">{distance(status.lastWake?.time, now)}</Fact>
            <Fact title="Restarts">{count(status.restarts ?? 0)}</Fact>
            {status.nextWake?.time && <Fact title="Next wake">{distance(status.nextWake.time, now)}</Fact>}
            <Fact title="Module"><code title={clean(status.module?.resolved)}>{clean(status.module?.sha256 ?? "", 100).slice(0, 12) || "–"}</code></Fact>
          </dl>
          {status.lastError && <Trouble title="The last guest ended:" words={clean(status.lastError, 400)} />}
          {status.staysResidentBecause && <p class="quiet">It stays in memory: <Name of={status.staysResidentBecause} most={400} /></p>}
          <Conditions object={object.value} />
        </>
      )}
      <History namespace={namespace} name={name} isOperator />
      <h2>Output</h2>
      <Logs namespace={namespace} name={name} />
    </>
  );
}
