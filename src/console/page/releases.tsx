// Airways with their instances, and Flights: trees of resources with their readiness.
import { useState } from "preact/hooks";

import { list, listAllowed } from "./api";
import { refOf } from "./difference";
import type { Compared } from "./difference";
import { Compare, Difference, OtherResources, useDrift } from "./drift";
import type { Drift } from "./drift";
import { distance } from "./format";
import { Badge, Conditions, Name, Only, ReadyBadge, Trouble, Waiting, useLoaded, useSession, whyLink } from "./parts";
import { childrenOf, isReady } from "./readiness";
import { Logs } from "./guest";

const OWNED = ["/apis/apps/v1/{}/deployments", "/apis/apps/v1/{}/statefulsets", "/apis/apps/v1/{}/daemonsets", "/apis/batch/v1/{}/jobs", "/apis/batch/v1/{}/cronjobs",
  "/api/v1/{}/services", "/api/v1/{}/configmaps", "/api/v1/{}/persistentvolumeclaims", "/api/v1/{}/pods"];

// What a comparison says of a resource; undefined: nothing.
const comparedOf = (drift: Drift, resource: string): Compared | undefined => drift.value?.resources.find((one) => one.resource === resource);

function Resource({ of, all, compared }: { of: any; all: any[]; compared?: Compared }) {
  const children = childrenOf(of, all);
  const ready = isReady(of);
  const [group] = of.apiVersion.includes("/") ? of.apiVersion.split("/") : [""];
  const link = whyLink({ group, kind: of.kind, namespace: of.metadata.namespace, name: of.metadata.name });
  return (
    <li>
      <span class="resource">
        <Badge kind={ready === undefined ? "asleep" : ready ? "good" : "failing"}>{ready === undefined ? "exists" : ready ? "ready" : "not ready"}</Badge>{" "}
        <Name of={`${of.kind} ${of.metadata.name}`} /> {link && <a href={link}>why?</a>}
      </span>{" "}
      <Difference of={compared} />
      {children.length > 0 && <ul>{children.map((child) => <Resource key={child.metadata.uid} of={child} all={all} />)}</ul>}
    </li>
  );
}

// What an instance owns, of the kinds that the console may read, in its namespace.
function Owned({ instance, drift }: { instance: any; drift: Drift }) {
  const namespace = instance.metadata.namespace;
  const found = useLoaded(async (signal) => {
    const objects: any[] = [];
    const problems: string[] = [];
    for (const path of OWNED) {
      const kind = path.split("/").pop()!;
      try {
        const listed = await list(path.replace("{}", `namespaces/${encodeURIComponent(namespace)}`), signal);
        // Items of a list have no kind of their own.
        const [, , group, version] = path.startsWith("/apis") ? path.split("/") : ["", "", "", "v1"];
        for (const item of listed.items) objects.push({ ...item, apiVersion: group ? `${group}/${version}` : "v1", kind: KINDS[kind] });
      } catch (error) {
        if (signal.aborted) throw error;
        problems.push(`${kind}: ${error instanceof Error ? error.message : error}`);
      }
    }
    return { objects, problems };
  }, [namespace, instance.metadata.uid], 15_000);
  const children = found.value ? childrenOf(instance, found.value.objects) : [];
  const shown = new Set(children.map(refOf));
  return (
    <>
      <Waiting of={found} />
      {found.value && (children.length ? <ul>{children.map((child) => <Resource key={child.metadata.uid} of={child} all={found.value!.objects} compared={comparedOf(drift, refOf(child))} />)}</ul> : <p class="quiet">It owns no workload, service, claim or ConfigMap in its namespace. Other kinds are not shown.</p>)}
      {found.value && found.value.problems.length > 0 && <p class="quiet">Not shown: <Name of={found.value.problems.join("; ")} most={600} /></p>}
      <OtherResources drift={drift} shown={shown} />
    </>
  );
}
const KINDS: Record<string, string> = { deployments: "Deployment", statefulsets: "StatefulSet", daemonsets: "DaemonSet", jobs: "Job", cronjobs: "CronJob", services: "Service", configmaps: "ConfigMap", persistentvolumeclaims: "PersistentVolumeClaim", pods: "Pod" };

function Folded({ head, children }: { head: any; children: () => any }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{head}</summary>
      {isOpen && <div class="inside">{children()}</div>}
    </details>
  );
}

function Instance({ of, airway }: { of: any; airway: any }) {
  const { group, names } = airway.spec.template;
  const { namespace, name } = of.metadata;
  const where = [namespace, name].filter(Boolean).join("/");
  const drift = useDrift(refOf({ apiVersion: `${group}/v1`, kind: names.kind, metadata: of.metadata }));
  return (
    <>
      <Conditions object={of} of={where} />
      <Compare drift={drift} of={where} />
      {namespace ? <Owned instance={of} drift={drift} /> : <><p class="quiet">The instance belongs to the cluster; what it owns is not listed.</p><OtherResources drift={drift} shown={new Set()} /></>}
      <p><a href={`#/turns/${encodeURIComponent(namespace ?? "")}/${encodeURIComponent(`${names.plural}.${group}/${name}`)}`}>Turns of its flight</a></p>
    </>
  );
}

function Instances({ airway }: { airway: any }) {
  const session = useSession();
  const group = airway.spec?.template?.group;
  const plural = airway.spec?.template?.names?.plural;
  const version = (airway.spec?.template?.versions ?? []).find((one: any) => one.storage)?.name ?? airway.spec?.template?.versions?.[0]?.name;
  const found = useLoaded((signal) => (group && plural && version ? listAllowed(`/apis/${group}/${version}`, plural, session.namespace, signal) : Promise.reject(new Error("Its template names no group, plural and version."))), [group, plural, version], 15_000);
  return (
    <>
      <Waiting of={found} />
      <Trouble title="The instances cannot be listed." words={found.problem} />
      <Only namespaces={found.value?.only} />
      {found.value?.items.length === 0 && <p class="quiet">There are no instances.</p>}
      {found.value?.items.map((one) => {
        const where = [one.metadata.namespace, one.metadata.name].filter(Boolean).join("/");
        return (
          <Folded key={one.metadata.uid} head={<><ReadyBadge object={one} /> <Name of={where} /> <span class="quiet">made {distance(one.metadata.creationTimestamp, Date.now())}</span></>}>
            {() => <Instance of={one} airway={airway} />}
          </Folded>
        );
      })}
    </>
  );
}

function FlightResources({ of, kind, resource }: { of: any; kind: string; resource: string }) {
  const inventory: any[] = of.status?.inventory ?? [];
  const where = [of.metadata.namespace, of.metadata.name].filter(Boolean).join("/");
  const drift = useDrift(refOf({ apiVersion: "yoke.cd/v1alpha1", kind, metadata: of.metadata }));
  return (
    <>
      <Conditions object={of} of={where} />
      <Compare drift={drift} of={where} />
      <ul>
        {inventory.map((one, at) => (
          <li key={at}><Badge kind={one.ready ? "good" : "failing"}>{one.ready ? "ready" : "not ready"}</Badge> <Name of={one.resource} /> <Difference of={comparedOf(drift, one.resource)} /></li>
        ))}
      </ul>
      <OtherResources drift={drift} shown={new Set(inventory.map((one) => one.resource))} />
      <p><a href={`#/turns/${encodeURIComponent(of.metadata.namespace ?? "")}/${encodeURIComponent(`${resource}/${of.metadata.name}`)}`}>Turns</a></p>
      <Logs namespace={of.metadata.namespace ?? ""} name={of.metadata.name} resource={resource} />
    </>
  );
}

function Flight({ of, kind, resource }: { of: any; kind: string; resource: string }) {
  const count = of.status?.inventory?.length ?? 0;
  const where = [of.metadata.namespace, of.metadata.name].filter(Boolean).join("/");
  return (
    <Folded head={<><ReadyBadge object={of} /> <Name of={where} /> <span class="quiet">{count} resource{count === 1 ? "" : "s"}</span></>}>
      {() => <FlightResources of={of} kind={kind} resource={resource} />}
    </Folded>
  );
}

function Section({ title, plural, children }: { title: string; plural: string; children: (object: any) => any }) {
  const session = useSession();
  const found = useLoaded((signal) => listAllowed("/apis/yoke.cd/v1alpha1", plural, session.namespace, signal), [plural], 15_000);
  return (
    <section>
      <h2>{title}</h2>
      <Waiting of={found} />
      <Trouble words={found.problem} />
      <Only namespaces={found.value?.only} />
      {found.value?.items.length === 0 && <p class="quiet">There are none.</p>}
      <div class="tree">{found.value?.items.map(children)}</div>
    </section>
  );
}

export function ReleasesPage() {
  return (
    <>
      <h1>Airways and Flights</h1>
      <Section title="Airways" plural="airways">
        {(airway) => (
          <Folded key={airway.metadata.uid} head={<><ReadyBadge object={airway} /> <Name of={airway.metadata.name} /></>}>
            {() => <><Conditions object={airway} of={airway.metadata.name} /><Instances airway={airway} /></>}
          </Folded>
        )}
      </Section>
      <Section title="Flights" plural="flights">
        {(one) => <Flight key={one.metadata.uid} of={one} kind="Flight" resource="flights.yoke.cd" />}
      </Section>
      <Section title="ClusterFlights" plural="clusterflights">
        {(one) => <Flight key={one.metadata.uid} of={one} kind="ClusterFlight" resource="clusterflights.yoke.cd" />}
      </Section>
    </>
  );
}
