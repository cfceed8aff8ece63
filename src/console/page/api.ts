// Questions to the server of the console. The key of this start comes with the address, behind '#': it
// is in no request line and no Referer. It stays in this tab's session storage, which belongs to
// this address and port alone.

const KEY = "hangar-console-key";

export class Problem extends Error {
  constructor(readonly status: number, words: string) {
    super(words);
  }
}

async function read(response: Response): Promise<any> {
  const text = await response.text();
  let body: any;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Problem(response.status, `The console's answer is not JSON (status ${response.status}).`);
  }
  if (!response.ok) throw new Problem(response.status, String(body?.error ?? `status ${response.status}`));
  return body;
}

async function send(path: string, options: RequestInit): Promise<any> {
  let response: Response;
  try {
    response = await fetch(path, { ...options, cache: "no-store", redirect: "error", credentials: "omit" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "hangar console has ended or does not answer. Start it again, and open the address that it prints.");
  }
  return read(response);
}

// Takes the key out of the address. Throws a Problem if there is none.
export async function open(): Promise<void> {
  const hash = location.hash;
  const given = /^#(key|open)=([0-9a-f]{64})$/.exec(hash);
  if (given) {
    // The address bar and the history do not keep it.
    history.replaceState(null, "", location.pathname);
    let key = given[2];
    if (given[1] === "open") key = (await send("/api/open", { method: "POST", headers: { "Hangar-Console-Key": key } })).key;
    sessionStorage.setItem(KEY, key);
  }
  if (!sessionStorage.getItem(KEY)) {
    throw new Problem(401, "The address lacks its key. Open the address that hangar console has printed.");
  }
}

const headers = () => ({ "Hangar-Console-Key": sessionStorage.getItem(KEY) ?? "" });

export type Parameters = Record<string, string | number | boolean | undefined>;

export function pathOf(path: string, parameters: Parameters = {}): string {
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return query.length ? `${path}?${query.join("&")}` : path;
}

export const ask = (path: string, parameters?: Parameters, signal?: AbortSignal): Promise<any> =>
  send(pathOf(`/api/${path}`, parameters), { headers: headers(), signal });

export const tell = (path: string, body: unknown): Promise<any> =>
  send(`/api/${path}`, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) });

// The most objects that the page keeps of one list.
export const LIST_MAX = 20000;

export interface Listed {
  items: any[];
  leftOut: boolean;
}

// All pages of a list. `keep`: what the page keeps of an object.
export async function list(path: string, signal?: AbortSignal, keep: (item: any) => any = (item) => item): Promise<Listed> {
  const items: any[] = [];
  let token: string | undefined;
  do {
    const page = await ask(`cluster${path}`, { limit: 500, continue: token }, signal);
    for (const item of page.items ?? []) items.push(keep(item));
    token = page.metadata?.continue || undefined;
  } while (token && items.length < LIST_MAX);
  return { items, leftOut: token !== undefined };
}

export interface Allowed extends Listed {
  only?: string[]; // The namespaces that were listed, if all together may not be.
}

// A list of all namespaces, or of those of which the console knows if the user may not list all: the kubeconfig's, and those in
// which the host shows him guests.
export async function listAllowed(group: string, plural: string, namespace: string, signal?: AbortSignal, keep?: (item: any) => any): Promise<Allowed> {
  try {
    return await list(`${group}/${plural}`, signal, keep);
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 403) throw error;
    const known = new Set([namespace]);
    const top = await ask("top", { window: 60 }, signal).catch(() => undefined);
    for (const row of top?.guests ?? []) if (row.namespace) known.add(row.namespace);
    const listed: Allowed = { items: [], leftOut: false, only: [] };
    for (const one of [...known].sort().slice(0, 100)) {
      try {
        const found = await list(`${group}/namespaces/${encodeURIComponent(one)}/${plural}`, signal, keep);
        listed.items.push(...found.items);
        listed.leftOut ||= found.leftOut;
        listed.only!.push(one);
      } catch (inner) {
        if (!(inner instanceof Problem) || inner.status !== 403) throw inner;
      }
    }
    if (!listed.only!.length) throw error;
    return listed;
  }
}
