// The same as a Javy program: one JSON document on stdin, {"state", "event"}, and one on stdout.
import { handle_event } from './handle_event';

declare const Javy: { IO: { readSync(fd: number, into: Uint8Array): number; writeSync(fd: number, bytes: Uint8Array): number } };

function readAll(): string {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = new Uint8Array(16384);
    const count = Javy.IO.readSync(0, chunk);
    if (count === 0) break;
    chunks.push(chunk.subarray(0, count));
    size += count;
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return new TextDecoder().decode(all);
}

const { state, event } = JSON.parse(readAll());
const answer = handle_event(typeof state === 'string' ? state : JSON.stringify(state ?? null), JSON.stringify(event));
const bytes = new TextEncoder().encode(answer);
for (let at = 0; at < bytes.length; ) at += Javy.IO.writeSync(1, bytes.subarray(at));
