// Nodes that are provisioned, and the rollout.
import { ask } from "./api";
import { clean, distance } from "./format";
import { Badge, Fact, Name, Table, Trouble, Waiting, useLoaded } from "./parts";

const kindOf = (phase: string) => (phase === "Provisioned" ? "good" : phase === "Failed" ? "failing" : phase === "-" || phase === "Skipped" ? "asleep" : "waiting");

export function NodesPage() {
  const found = useLoaded((signal) => ask("nodes", {}, signal), [], 5_000);
  const rollout = found.value?.rollout;
  const nodes: any[] = found.value?.nodes ?? [];
  const asked = nodes.filter((one) => one.phase !== "-" && one.phase !== "Skipped");
  const done = asked.filter((one) => one.phase === "Provisioned" && one.version === rollout?.version);
  return (
    <>
      <h1>Nodes</h1>
      <Waiting of={found} />
      <Trouble title="The nodes cannot be shown." words={found.problem} />
      {rollout && (
        <>
          <h2>Rollout</h2>
          {rollout.version ? (
            <>
              <dl class="facts">
                <Fact title="Standing"><Badge kind={rollout.standing === "Halted" ? "failing" : rollout.standing === "Rolling" ? "waiting" : "good"}>{clean(rollout.standing, 30)}</Badge></Fact>
                <Fact title="Installer"><Name of={rollout.version} /></Fact>
                <Fact title="Done">{done.length} of {asked.length}</Fact>
                <Fact title="At work"><Name of={(rollout.active ?? []).map((one: any) => (typeof one === "string" ? one : one?.node)).join(", ") || "none"} /></Fact>
              </dl>
              {asked.length > 0 && <progress class="whole" max={asked.length} value={done.length} aria-label="Nodes done" />}
              {rollout.message && <Trouble words={rollout.message} />}
            </>
          ) : (
            <p class="quiet">No rollout record in the host's namespace (<code>--host-namespace</code>). The host creates the record once it has an installer image.</p>
          )}
        </>
      )}
      {nodes.length > 0 && (
        <Table label="Nodes" heads={["Node", "Phase", "Version", "Since", "Last error"]}>
          {nodes.map((one) => (
            <tr key={one.node}>
              <th scope="row"><Name of={one.node} /></th>
              <td><Badge kind={kindOf(one.phase)}>{one.phase === "-" ? "not asked for" : clean(one.phase, 30)}</Badge>{one.action === "Uninstall" && " (uninstall)"}</td>
              <td><Name of={one.version} /></td>
              <td>{one.since ? distance(one.since, Date.now()) : "–"}</td>
              <td class="long"><Name of={one.lastError} most={1000} /></td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
