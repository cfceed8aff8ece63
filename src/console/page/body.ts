// The recorded body of a write, as text for people. Pure.
import { cleanLines } from "./format";

// Why there is no text, as `hangar timeline --bodies` says it.
const WITHOUT_TEXT: Record<string, string> = {
  unreadable: "The body is not recorded: it is neither JSON nor short YAML.",
  "too-large": "The body is not recorded: it is too large.",
  "no-room": "The body is not recorded: too much waited to be written.",
  withheld: "The body is withheld: it needs get on the operator, and on the Secrets that it read.",
};

export interface Body {
  text?: string;
  words?: string; // Instead of a text.
}

// Bodies are recorded in ASCII.
const json = (value: unknown, indent?: number) =>
  JSON.stringify(value, null, indent).replace(/[^\0-\x7e]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

// Indented only if that changes nothing else: it would change numbers beyond 2^53 and the order of some keys.
function indented(text: string): string {
  try {
    const value = JSON.parse(text);
    return json(value) === text ? json(value, 2) : text;
  } catch {
    return text;
  }
}

// undefined: bodies of the operator were not recorded.
export function bodyOf(request: { bodyState?: string; body?: string }): Body | undefined {
  if (!request.bodyState) return undefined;
  if (request.body === undefined) return { words: WITHOUT_TEXT[request.bodyState] ?? `The body is not recorded: ${cleanLines(request.bodyState)}.` };
  const text = cleanLines(indented(request.body));
  return { text: request.bodyState === "cut" ? `${text} (cut here)` : text };
}
