// The differences between what a flight has printed and the cluster, on demand.
import { useState } from "preact/hooks";

import { ask } from "./api";
import { clean, clock } from "./format";
import { Badge, Name, Trouble, useLoaded } from "./parts";
import { partsOf, summary } from "./difference";
import type { Compared, Drift as Found } from "./difference";

export interface Drift {
  value?: Found & { at: string };
  problem?: string;
  status?: number;
  isLoading: boolean;
  compare: () => void;
}

// Nothing is compared before compare() is called. `instance`: as refOf() names it.
export function useDrift(instance: string): Drift {
  const [round, setRound] = useState(0);
  const found = useLoaded(async (signal) => (round ? { ...((await ask("drift", { instance }, signal)) as Found), at: new Date().toISOString() } : undefined), [instance, round]);
  return { ...found, isLoading: round > 0 && found.isLoading, compare: () => setRound((old) => old + 1) };
}

// The button, and the outcome in words. `of`: the name of the instance.
export function Compare({ drift, of }: { drift: Drift; of: string }) {
  const { value } = drift;
  const words = value ? "Compare again" : "Compare with the flight's output";
  return (
    <div class="compare">
      <button type="button" onClick={drift.compare} disabled={drift.isLoading} aria-label={`${words}: ${clean(of, 80)}`}>{words}</button>{" "}
      <span role="status">
        {drift.isLoading ? "Loading…" : value && <>{summary(value)} <span class="quiet">Compared at {clock(value.at).slice(0, 8)}: only fields that the flight has printed.</span></>}
      </span>
      <Trouble title={drift.status === 403 ? "A right is missing." : "The comparison failed."} words={drift.isLoading ? undefined : drift.problem} />
    </div>
  );
}

function Text({ of, label }: { of: string; label: string }) {
  return (
    <pre class="diff" role="region" aria-label={label} tabIndex={0}>
      {partsOf(of).map((part, at) => {
        switch (part.sort) {
          case "removed":
            return <del key={at}>{part.text}</del>;
          case "added":
            return <ins key={at}>{part.text}</ins>;
          default:
            return <span key={at} class={part.sort}>{part.text}</span>;
        }
      })}
    </pre>
  );
}

// How a resource differs. `of`: nothing if the flight has not printed it, as far as is known.
export function Difference({ of }: { of?: Compared }) {
  const [isOpen, setOpen] = useState(false);
  if (!of) return null;
  switch (of.drift) {
    case "none":
      return <Badge kind="good">as printed</Badge>;
    case "missing":
      return <><Badge kind="failing">missing</Badge> <span class="quiet">The flight has printed it, and it is not in the cluster.</span></>;
    case "differs":
      return (
        <details class="difference" onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary><Badge kind="waiting">differs</Badge> Diff of <Name of={of.resource} /></summary>
          {isOpen && (
            <>
              <p class="quiet">Lines with - are the flight's, lines with + the cluster's.</p>
              {of.difference ? <Text of={of.difference} label={`Differences of ${clean(of.resource, 80)}`} /> : null}
              {of.isCut && <p class="quiet">The differences of all resources are too long: this one is cut. <code>hangar turbulence</code> shows them in whole.</p>}
            </>
          )}
        </details>
      );
    default:
      return <><Badge kind="asleep">not compared</Badge> <span class="quiet"><Name of={of.error} most={600} /></span></>;
  }
}

// Resources that the flight has printed and the tree does not show.
export function OtherResources({ drift, shown }: { drift: Drift; shown: Set<string> }) {
  const others = (drift.value?.resources ?? []).filter((one) => !shown.has(one.resource));
  if (!others.length) return null;
  return (
    <>
      <p class="quiet">{shown.size ? "The flight has also printed:" : "The flight has printed:"}</p>
      <ul>{others.map((one) => <li key={one.resource}><span class="resource"><Name of={one.resource} /></span> <Difference of={one} /></li>)}</ul>
    </>
  );
}
