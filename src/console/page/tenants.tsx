// What each tenant uses and may use, and what it has cost.
import { useMemo } from "preact/hooks";

import { ask, listAllowed } from "./api";
import { HOST_ROW, shownCosts } from "./cost";
import type { Cost } from "./cost";
import { bytes, clean, count, mibHours, micros, seconds } from "./format";
import { Name, Only, Table, Trouble, Waiting, useLoaded, useSession } from "./parts";

// Rows of the table of costs; a host may have 10,000.
const COSTS_LISTED = 200;

interface RecentCost {
  cpu: number;
  turns: number;
  requests: number;
  written: number;
}

function Share({ of, show, label }: { of: any; show: (value: number | undefined) => string; label: string }) {
  if (!of || of.used === undefined) return <>–</>;
  if (of.limit === undefined) return <>{show(of.used)}</>;
  const part = of.limit > 0 ? of.used / of.limit : 0;
  return (
    <span class="share">
      {`${show(of.used)} of ${show(of.limit)}`.replace(/ (?!of)/g, "\u00a0")}
      <meter min={0} max={1} high={0.85} optimum={0} value={Math.min(1, part)} aria-label={label} />
    </span>
  );
}

function CostCells({ of }: { of: Cost }) {
  return (
    <>
      <td class="number">{(of.cpuMicroseconds / 1e6).toFixed(2)}</td>
      <td class="number">{mibHours(of.memoryByteSeconds)}</td>
      <td class="number">{mibHours(of.cacheByteSeconds)}</td>
      <td class="number">{mibHours(of.diskByteSeconds)}</td>
      <td class="number">{count(of.turns)}</td>
      <td class="number">{count(of.requests)}</td>
      <td class="number">{bytes(of.readBytes)}</td>
      <td class="number">{bytes(of.writtenBytes)}</td>
    </>
  );
}

// What `hangar top --cost` prints.
function Costs() {
  const found = useLoaded((signal) => ask("cost", {}, signal), [], 15_000);
  const shown = useMemo(() => shownCosts(found.value?.rows ?? [], COSTS_LISTED), [found.value]);
  return (
    <>
      <h2>Cost since the host started</h2>
      <Waiting of={found} />
      <Trouble title="The cost cannot be shown." words={found.problem} />
      {found.value && (
        <>
          <p class="quiet">The host started {seconds(found.value.microseconds / 1e6)} ago. 1 MiB·h is a MiB for an hour.</p>
          {(found.value.problems ?? []).map((one: string) => <Trouble key={one} words={one} />)}
          <Table label="Cost" heads={["Namespace", "Module", "CPU, s", "Memory, MiB·h", "Shared cache, MiB·h", "Disk, MiB·h", "Turns", "API\u00a0calls", "Read", "Written"]} numbers={[2, 3, 4, 5, 6, 7, 8, 9]}>
            {shown.rows.map((row) => (
              <tr key={`${row.namespace} ${row.module ?? ""}`}>
                <th scope="row"><Name of={row.namespace} /></th>
                <td>{row.module ? <code title={clean(row.module)}>{clean(row.module).slice(0, 12)}</code> : "–"}</td>
                <CostCells of={row} />
              </tr>
            ))}
            {shown.more && <tr><th scope="row">({count(shown.leftOut)} more rows)</th><td>–</td><CostCells of={shown.more} /></tr>}
            {shown.host && <tr><th scope="row">{HOST_ROW}</th><td>–</td><CostCells of={shown.host} /></tr>}
            <tr><th scope="row">(sum)</th><td>–</td><CostCells of={shown.sum} /></tr>
          </Table>
        </>
      )}
    </>
  );
}

export function TenantsPage() {
  const session = useSession();
  const usages = useLoaded((signal) => listAllowed("/apis/hangar.dev/v1alpha1", "tenantusages", session.namespace, signal), [], 15_000);
  const costs = useLoaded((signal) => ask("top", { window: 900 }, signal), [], 15_000);
  const byNamespace = useMemo(() => {
    const out = new Map<string, RecentCost>();
    for (const row of costs.value?.guests ?? []) {
      const one = out.get(row.namespace) ?? { cpu: 0, turns: 0, requests: 0, written: 0 };
      one.cpu += row.cpuMicroseconds;
      one.turns += row.turns;
      one.requests += row.requests;
      one.written += row.writtenBytes;
      out.set(row.namespace, one);
    }
    return out;
  }, [costs.value]);
  const objects: any[] = usages.value?.items ?? [];
  // TenantUsage has the name of its namespace; namespaces without one still have a cost.
  const rows = [
    ...objects.map((one) => ({ namespace: one.metadata.namespace ?? one.metadata.name, status: one.status ?? {} })),
    ...[...byNamespace.keys()].filter((name) => !objects.some((one) => (one.metadata.namespace ?? one.metadata.name) === name)).map((namespace) => ({ namespace, status: {} as any })),
  ].sort((left, right) => (byNamespace.get(right.namespace)?.cpu ?? 0) - (byNamespace.get(left.namespace)?.cpu ?? 0));
  const cores = (value: number | undefined) => (value === undefined ? "–" : (value / 1000).toFixed(value < 100 ? 3 : 2));
  return (
    <>
      <h1>Tenants</h1>
      <Trouble title="Usage cannot be listed." words={usages.problem} />
      <Trouble title="There is no cost:" words={costs.problem} />
      <Only namespaces={usages.value?.only} />
      <Waiting of={usages} />
      {!usages.isLoading && rows.length === 0 && !usages.problem && <p class="quiet">No tenant uses anything that you may see.</p>}
      {rows.length > 0 && (
        <Table label="Tenants" heads={["Namespace", "CPU, 15\u00a0min", "Cores now", "Guest memory", "Guest disk", "Module disk", "Operators", "Workflows", "Flights", "Instances", "API\u00a0calls, 15\u00a0min", "Written, 15\u00a0min"]} numbers={[1, 7, 8, 9, 10, 11]}>
          {rows.map(({ namespace, status }) => {
            const cost = byNamespace.get(namespace);
            return (
              <tr key={namespace}>
                <th scope="row"><Name of={namespace || "(cluster)"} />{status.policies?.length > 0 && <div class="quiet"><Name of={status.policies.join(", ")} /></div>}</th>
                <td class="number">{micros(cost?.cpu)}</td>
                <td><Share of={status.cpu} show={cores} label="Cores" /></td>
                <td><Share of={status.guestMemory} show={bytes} label="Guest memory" /></td>
                <td><Share of={status.guestDisk} show={bytes} label="Guest disk" /></td>
                <td><Share of={status.moduleDisk} show={bytes} label="Module disk" /></td>
                <td><Share of={status.operators} show={count} label="Operators" />{status.operators?.awake !== undefined && <div class="quiet">{status.operators.awake} awake</div>}</td>
                <td class="number">{count(status.workflows?.used)}</td>
                <td class="number">{count(status.flights?.used)}</td>
                <td class="number">{count(status.instances?.used)}</td>
                <td class="number">{count(cost?.requests)}</td>
                <td class="number">{bytes(cost?.written)}</td>
              </tr>
            );
          })}
        </Table>
      )}
      <Costs />
    </>
  );
}
