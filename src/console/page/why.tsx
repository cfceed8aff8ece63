// The writes to an object, and the way back to their causes.
import { useState } from "preact/hooks";

import { ask } from "./api";
import { cleanLines } from "./format";
import { Name, Trouble, Waiting, part, useLoaded, useSession } from "./parts";

function Form({ kind = "", name = "", namespace = "" }: { kind?: string; name?: string; namespace?: string }) {
  const session = useSession();
  const [of, setOf] = useState({ kind, name, namespace: namespace || session.namespace });
  const go = (event: Event) => {
    event.preventDefault();
    if (of.kind && of.name) location.hash = `#/why/${part(of.kind)}/${part(of.name)}/${part(of.namespace)}`;
  };
  const field = (title: string, key: keyof typeof of, placeholder: string) => (
    <label>
      {title} <input value={of[key]} placeholder={placeholder} onInput={(event) => setOf({ ...of, [key]: event.currentTarget.value })} />
    </label>
  );
  return (
    <form class="tools" onSubmit={go}>
      {field("Kind", "kind", "deployment.apps")}
      {field("Name", "name", "web")}
      {field("Namespace", "namespace", "default")}
      <button type="submit">Find</button>
    </form>
  );
}

export function WhyPage({ kind, name, namespace }: { kind?: string; name?: string; namespace?: string }) {
  const found = useLoaded((signal) => (kind && name ? ask("why", { object: `${kind}/${name}`, namespace }, signal) : Promise.resolve(undefined)), [kind, name, namespace]);
  return (
    <>
      <h1>Why was it written?</h1>
      <Form key={`${kind}/${name}/${namespace}`} kind={kind} name={name} namespace={namespace} />
      {kind && name && (
        <>
          <h2><Name of={`${kind}/${name}`} />{namespace && <> in <Name of={namespace} /></>}</h2>
          <Waiting of={found} />
          <Trouble title="There is no answer:" words={found.problem} />
          {found.value && <pre class="log" tabIndex={0} role="region" aria-label="Writes and their causes">{cleanLines(found.value.text)}</pre>}
        </>
      )}
    </>
  );
}
