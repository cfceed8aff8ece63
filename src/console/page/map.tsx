// All operators as one picture.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { ask, listAllowed } from "./api";
import { bytes, clean, count, micros } from "./format";
import { MEASURES, STEPS, cellAt, gridOf, keyOf, moved, operatorOf, stateOf, stepOf, withCosts } from "./fleet";
import type { Measure, Operator, State } from "./fleet";
import { Badge, Name, Only, Table, Trouble, Waiting, colour, guestLink, useLoaded, useSession, useTheme, useWidth } from "./parts";

const STATES: State[] = ["awake", "asleep", "failing", "waiting"];
const LISTED = 50;

function draw(canvas: HTMLCanvasElement, operators: Operator[], measure: Measure, selected: number | undefined, width: number, height: number) {
  const grid = gridOf(operators.length, width, height);
  const ratio = window.devicePixelRatio || 1;
  const tall = Math.max(grid.rows * grid.cell, grid.cell);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(tall * ratio);
  canvas.style.height = `${tall}px`;
  const context = canvas.getContext("2d")!;
  context.scale(ratio, ratio);
  const side = grid.cell - (grid.cell > 20 ? 3 : grid.cell > 11 ? 2 : 1);
  // One path for each colour: 10,000 cells take a few milliseconds.
  const paths = new Map<string, Path2D>();
  const marks = new Path2D();
  const largest = measure === "state" ? 0 : operators.reduce((most, one) => Math.max(most, MEASURES[measure].of(one)), 0);
  operators.forEach((one, at) => {
    const x = (at % grid.columns) * grid.cell;
    const y = Math.floor(at / grid.columns) * grid.cell;
    const state = stateOf(one);
    const name = measure === "state" ? `state-${state}` : `heat-${stepOf(MEASURES[measure].of(one), largest)}`;
    let path = paths.get(name);
    if (!path) paths.set(name, (path = new Path2D()));
    path.rect(x, y, side, side);
    if (state === "failing") {
      // Not by colour alone: a cross.
      marks.moveTo(x + 1.5, y + 1.5);
      marks.lineTo(x + side - 1.5, y + side - 1.5);
      marks.moveTo(x + side - 1.5, y + 1.5);
      marks.lineTo(x + 1.5, y + side - 1.5);
    }
  });
  for (const [name, path] of paths) {
    context.fillStyle = colour(name);
    context.fill(path);
  }
  context.lineWidth = Math.max(1, side / 8);
  context.strokeStyle = colour(measure === "state" ? "on-failing" : "state-failing");
  context.stroke(marks);
  if (selected !== undefined && selected < operators.length) {
    context.strokeStyle = colour("text");
    context.lineWidth = 2;
    context.strokeRect((selected % grid.columns) * grid.cell - 1, Math.floor(selected / grid.columns) * grid.cell - 1, side + 2, side + 2);
  }
  return grid;
}

const inWords = (one: Operator) =>
  `${clean(one.namespace, 80)}/${clean(one.name, 80)}: ${clean(one.phase, 40)}, ${bytes(one.memory)}, ` +
  (one.cpu === undefined ? `${count(one.wakes)} wakes` : `CPU ${micros(one.cpu)}, ${count(one.turns)} wakes in the last minute`);

function Picture({ operators, measure }: { operators: Operator[]; measure: Measure }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [box, width] = useWidth();
  const [selected, setSelected] = useState<number>();
  const [hovered, setHovered] = useState<number>();
  const theme = useTheme();
  const height = Math.max(220, Math.round(window.innerHeight * 0.55));
  const grid = useMemo(() => gridOf(operators.length, Math.max(1, width), height), [operators.length, width, height]);
  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const frame = requestAnimationFrame(() => canvas.current && draw(canvas.current, operators, measure, selected, width, height));
    return () => cancelAnimationFrame(frame);
  }, [operators, measure, selected, width, theme, height]);
  const at = (event: MouseEvent) => {
    const corner = canvas.current!.getBoundingClientRect();
    return cellAt(grid, event.clientX - corner.left, event.clientY - corner.top, operators.length);
  };
  const go = (index: number | undefined) => {
    if (index !== undefined) location.hash = guestLink(operators[index].namespace, operators[index].name);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return go(selected);
    }
    if (!/^(Arrow|Home|End)/.test(event.key)) return;
    event.preventDefault();
    setSelected(selected === undefined ? 0 : moved(selected, event.key, grid, operators.length));
  };
  const shown = hovered ?? selected;
  return (
    <div class="picture">
      <div ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="map of operators"
          aria-label={`${operators.length} operators. Arrow keys move, Enter opens one.`}
          aria-describedby="shown"
          onMouseMove={(event) => setHovered(at(event))}
          onMouseLeave={() => setHovered(undefined)}
          onClick={(event) => go(at(event))}
          onKeyDown={onKey}
          onFocus={() => selected === undefined && operators.length && setSelected(0)}
        />
      </div>
      <p id="shown" class="quiet" aria-live="polite">
        {shown !== undefined && operators[shown] ? <bdi>{inWords(operators[shown])}</bdi> : "Point at a square, or use the arrow keys. Enter opens an operator."}
      </p>
    </div>
  );
}

function Legend({ measure, operators }: { measure: Measure; operators: Operator[] }) {
  const counts = new Map<State, number>();
  for (const one of operators) counts.set(stateOf(one), (counts.get(stateOf(one)) ?? 0) + 1);
  return (
    <div class="legend">
      {measure === "state"
        ? STATES.map((state) => (
            <span key={state}>
              <i class={`swatch state-${state}`} />
              {count(counts.get(state) ?? 0)} {state}
            </span>
          ))
        : [
            <span key="least">none</span>,
            ...Array.from({ length: STEPS }, (_, step) => <i key={step} class={`swatch heat-${step}`} />),
            <span key="most">most</span>,
            <span key="failing"><i class="swatch cross" /> {count(counts.get("failing") ?? 0)} failing</span>,
          ]}
    </div>
  );
}

export function MapPage() {
  const session = useSession();
  const [measure, setMeasure] = useState<Measure>("state");
  const [filter, setFilter] = useState("");
  const objects = useLoaded((signal) => listAllowed("/apis/hangar.dev/v1alpha1", "operators", session.namespace, signal, operatorOf), [], 60_000);
  const costs = useLoaded((signal) => ask("top", { window: 60 }, signal), [], 5_000);
  const operators = useMemo(() => {
    const listed: Operator[] = objects.value?.items ?? [];
    const all = costs.value ? withCosts(listed, costs.value.guests) : listed;
    return [...all].sort((left, right) => (left.namespace < right.namespace ? -1 : left.namespace > right.namespace ? 1 : left.name < right.name ? -1 : 1));
  }, [objects.value, costs.value]);
  const shown = useMemo(() => (filter ? operators.filter((one) => keyOf(one).includes(filter.trim())) : operators), [operators, filter]);
  const first = useMemo(() => {
    const rank = (one: Operator) => (measure === "state" ? (stateOf(one) === "failing" ? 2 : stateOf(one) === "awake" ? 1 : 0) : MEASURES[measure].of(one));
    return [...shown].sort((left, right) => rank(right) - rank(left)).slice(0, LISTED);
  }, [shown, measure]);
  return (
    <>
      <h1>Operators</h1>
      <Trouble title="The operators cannot be listed." words={objects.problem} />
      <Trouble title="There is no cost and no history:" words={costs.problem} />
      <Only namespaces={objects.value?.only} />
      {objects.value?.leftOut && <Trouble words={`Only the first ${count(objects.value.items.length)} operators are shown.`} />}
      <div class="tools">
        <fieldset class="choice">
          <legend>Colour by</legend>
          {(Object.keys(MEASURES) as Measure[]).map((one) => (
            <label key={one}>
              <input type="radio" name="measure" checked={measure === one} onChange={() => setMeasure(one)} />
              <span>{MEASURES[one].title}</span>
            </label>
          ))}
        </fieldset>
        <label class="search">
          Filter <input type="search" value={filter} placeholder="namespace/name" onInput={(event) => setFilter(event.currentTarget.value)} />
        </label>
      </div>
      <Waiting of={objects} />
      {objects.value && (
        <>
          <Legend measure={measure} operators={shown} />
          {shown.length ? <Picture operators={shown} measure={measure} /> : <p class="quiet">{operators.length ? "No operator has such a name." : "There are no Operators that you may list."}</p>}
        </>
      )}
      {first.length > 0 && (
        <>
          <h2>{measure === "state" ? "Failing and awake first" : `Most ${MEASURES[measure].title}`}{shown.length > LISTED ? `, ${LISTED} of ${count(shown.length)}` : ""}</h2>
          <Table label="Operators" heads={["Operator", "State", "CPU, 1\u00a0min", "Wakes, 1\u00a0min", "API\u00a0calls, 1\u00a0min", "Memory", "Disk", "Restarts"]} numbers={[2, 3, 4, 5, 6, 7]}>
            {first.map((one) => (
              <tr key={keyOf(one)}>
                <th scope="row">
                  <a href={guestLink(one.namespace, one.name)}><Name of={keyOf(one)} /></a>
                  {one.message && stateOf(one) === "failing" && <div class="quiet"><Name of={one.message} most={160} /></div>}
                </th>
                <td><Badge kind={stateOf(one)}>{clean(one.phase, 30)}</Badge></td>
                <td class="number">{micros(one.cpu)}</td>
                <td class="number">{count(one.turns)}</td>
                <td class="number">{count(one.requests)}</td>
                <td class="number">{bytes(one.memory)}</td>
                <td class="number">{bytes(one.disk)}</td>
                <td class="number">{count(one.restarts)}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  );
}
