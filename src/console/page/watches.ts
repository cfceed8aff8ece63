// The watches that are open now, in an answer about the rights that a guest has used (`hangar rights`). Pure.

export interface OpenWatch {
  resource: string; // "deployments.apps"
  place: string; // A namespace; empty: all of them, or cluster-scoped.
}

export interface OpenWatches {
  watches: OpenWatch[];
  sharers: string[]; // Other guests with the same identity: a watch may be theirs.
  sharersWithheld: number;
}

const compare = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);

export function openWatches(found: any): OpenWatches {
  const watches: OpenWatch[] = (found.uses ?? [])
    .filter((use: any) => use.isOpen)
    .map((use: any) => ({ resource: use.group ? `${use.resource}.${use.group}` : use.resource ?? "", place: use.namespace ?? "" }));
  return {
    watches: watches.sort((left, right) => compare(left.resource, right.resource) || compare(left.place, right.place)),
    sharers: (found.sharers ?? []).map((one: any) => [one.namespace, one.name].filter(Boolean).join("/")).sort(compare),
    sharersWithheld: found.sharersWithheld ?? 0,
  };
}
