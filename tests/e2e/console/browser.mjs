// Drives the console's page in Debian's Chromium for test_console.py and tools/screenshots.py, which give it a scenario as JSON in its first
// argument and read a report as JSON from its output:
//
//   {"address": URL, "kind": "canned"|"visit"|"pictures"|"signal"|"stranger", ...} -> {"problems": [TEXT...], ...}
//
// Packages come from dev/setup.sh --tests (NODE_PATH); no browser is downloaded.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";

import { answer } from "./canned.mjs";
import { withPalette } from "./palette.mjs";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const scenario = JSON.parse(process.argv[2]);
const report = { problems: [], requests: [], texts: {} };
const browser = await chromium.launch({ executablePath: scenario.chromium, args: ["--no-sandbox", "--disable-gpu"] });

// A page whose every error, dialog and request to another server is a problem.
async function newPage(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (error) => report.problems.push(`error in the page: ${error.message}`));
  page.on("dialog", (dialog) => {
    report.problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A refused question is logged by Chromium itself; the page shows its words.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) report.problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    report.requests.push(request.url());
    if (!request.url().startsWith(new URL(scenario.address).origin) && !request.url().startsWith("data:")) report.problems.push(`a request elsewhere: ${request.url()}`);
  });
  return page;
}

async function check(page, name) {
  const facts = await page.evaluate(() => ({
    tooWide: document.documentElement.scrollWidth - document.documentElement.clientWidth, owned: window.owned,
    // Elements that the page itself never makes.
    strange: [...document.querySelectorAll("#page script, #page img, #page iframe, #page object")].map((one) => one.outerHTML.slice(0, 100)),
  }));
  if (facts.tooWide > 0) report.problems.push(`${name}: ${facts.tooWide} px wider than the window`);
  if (facts.owned) report.problems.push(`${name}: a text was run as a script`);
  for (const one of facts.strange) report.problems.push(`${name}: a text became an element: ${one}`);
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations) report.problems.push(`${name}: axe: ${one.id} (${one.impact}), ${one.nodes.length} times, first ${one.nodes[0].html.slice(0, 160)}: ${one.nodes[0].failureSummary.replace(/\s+/g, " ").slice(0, 300)}`);
}

const screenshot = (page, name) => (scenario.screenshots ? page.screenshot({ path: `${scenario.screenshots}/${name}.png`, fullPage: true }) : undefined);
// Also waits until the page is another one, as its title tells: checks would otherwise see the one before.
async function go(page, hash) {
  const before = await page.title();
  if (await page.evaluate((to) => location.hash === to || ((location.hash || "#/") === to), hash)) return;
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.waitForFunction((old) => document.title !== old, before, { timeout: 180_000 });
}
const settled = async (page) => {
  await page.waitForSelector("h1");
  await page.waitForFunction(() => !/Loading…|Connecting…/.test(document.querySelector("#page").textContent), undefined, { timeout: 180_000 });
  await page.waitForTimeout(300);
};

async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll("details:not([open]) > summary").forEach((one) => one.click()));
  await settled(page);
}
// Compares every instance and Flight that is unfolded, and unfolds the differences.
async function compare(page) {
  await page.evaluate(() => document.querySelectorAll(".compare button").forEach((one) => one.click()));
  await settled(page);
  await unfold(page);
}

const PAGES = [["map", "#/"], ["operator", "#/operator/team-0/failing"], ["releases", "#/releases"], ["workflows", "#/workflows"], ["workflow", "#/workflow/team-0/orders"], ["nodes", "#/nodes"], ["tenants", "#/tenants"],
  ["why", "#/why/Deployment.apps/web/team-0"]];

// Every page in both themes and two widths, with canned answers.
async function canned() {
  for (const theme of ["light", "dark"]) {
    for (const width of [1280, 360]) {
      const page = await newPage({ viewport: { width, height: width === 360 ? 740 : 860 }, colorScheme: theme });
      await page.route("**/api/**", (route) => {
        const found = answer(new URL(route.request().url()));
        return route.fulfill(found === undefined ? { status: 404, contentType: "application/json", body: '{"error": "no"}' } : { contentType: "application/json", body: JSON.stringify(found) });
      });
      await page.goto(scenario.address);
      await settled(page);  // It has taken the key out of the address.
      for (const [name, hash] of PAGES) {
        if (scenario.only && scenario.only !== name) continue;
        await go(page, hash);
        await settled(page);
        if (name === "map") await page.waitForSelector("canvas");
        if (name === "releases") {
          for (let round = 0; round < 3; round++) await unfold(page);
          await compare(page);
        }
        if (name === "operator") {
          await page.locator(".turns button").first().click();
          await page.getByRole("button", { name: /Read the last/ }).click();
          await page.getByRole("button", { name: "Show the open watches" }).click();
          await settled(page);
          await unfold(page);
        }
        await check(page, `${name}, ${theme}, ${width} px`);
        await screenshot(page, `${name}-${theme}-${width}`);
      }
      if (width === 1280 && theme === "light" && !scenario.only) await keyboard(page);
      await page.context().close();
    }
  }
}

// From the map to an operator without a mouse. Meanwhile `map.draws` has of each drawing of the map its time, its cells and the paths that it
// fills; `frames` the time between frames; `elements` the number of the page's elements.
const KEYS = 30;
async function keyboard(page) {
  await go(page, "#/");
  await settled(page);
  await page.locator("canvas").focus();
  await settled(page);
  await page.evaluate(() => {
    const seen = (window.seen_ = { draws: [], frames: [] });
    let [cells, paths, last] = [0, 0, performance.now()];
    const count = (type, name, add) => {
      const own = type.prototype[name];
      type.prototype[name] = function (...given) { add(); return own.apply(this, given); };
    };
    count(Path2D, "rect", () => { cells++; });
    count(CanvasRenderingContext2D, "fill", () => { paths++; });
    const nextFrame = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (callback) => nextFrame((now) => {
      [cells, paths] = [0, 0];
      const began = performance.now();
      callback(now);
      if (paths) seen.draws.push({ milliseconds: performance.now() - began, cells, paths });
    });
    const onFrame = (now) => { seen.frames.push(now - last); last = now; nextFrame(onFrame); };
    nextFrame(onFrame);
  });
  const asked = report.requests.length;
  for (let step = 0; step < KEYS; step++) await page.keyboard.press(step % 2 ? "ArrowRight" : "ArrowDown");
  await page.waitForFunction(() => window.seen_.draws.length > 0);
  report.map = { ...(await page.evaluate(() => window.seen_)), keys: KEYS, asked: report.requests.length - asked };
  report.map.elements = await page.locator("*").count();
  report.texts.selected = await page.locator("#shown").textContent();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.startsWith("#/operator/"));
}

// The pages of a real console: their texts.
async function visit() {
  const page = await newPage({ viewport: { width: 1280, height: 860 } });
  await page.goto(scenario.address);
  await settled(page);
  report.left = page.url();
  for (const [name, hash, until] of scenario.pages) {
    await go(page, hash);
    await settled(page);
    try {
      if (until) await page.getByText(until, { exact: false }).first().waitFor({ timeout: 180_000 });
    } catch {
      report.problems.push(`${name}: "${until}" did not appear`);
    }
    for (const button of scenario.click?.[name] ?? []) {
      await page.getByRole("button", { name: button }).first().click();
      await settled(page);
    }
    await unfold(page);
    // An Airway has instances, and they have resources.
    if (scenario.compares?.includes(name)) {
      for (let round = 0; round < 2; round++) await unfold(page);
      await compare(page);
    }
    await check(page, name);
    await screenshot(page, name);
    report.texts[name] = await page.locator("main").innerText();
  }
}

// Pictures for the documents: each in a window of its own, as large as the picture.
async function pictures() {
  for (const { name, hash, until, appears, width, height, theme, opens, unfolds, points } of scenario.pictures) {
    const page = await newPage({ viewport: { width, height }, colorScheme: theme });
    await page.goto(scenario.address);
    await settled(page);
    await go(page, hash);
    await settled(page);
    await page.getByText(until, { exact: false }).first().waitFor({ timeout: 180_000 });
    if (appears) await page.locator(appears).first().waitFor({ timeout: 180_000 });
    // An Airway has instances, and they have resources.
    for (let round = 0; unfolds && round < 3; round++) {
      await page.evaluate((text) => [...document.querySelectorAll(".tree > details")].filter((one) => one.textContent.includes(text))
        .flatMap((one) => [one, ...one.querySelectorAll("details")]).filter((one) => !one.open).forEach((one) => one.querySelector("summary").click()), unfolds);
      await settled(page);
    }
    for (const one of opens ?? []) await page.locator(one).first().click();
    if (points) await page.locator(points).hover({ position: { x: 20, y: 20 } });
    await settled(page);
    await check(page, name);
    fs.writeFileSync(`${scenario.screenshots}/${name}.png`, withPalette(await page.screenshot()));
    report.texts[name] = await page.locator("main").innerText();
    await page.context().close();
  }
}

// Sends a signal: asks first, and sends nothing if the answer is no.
async function signal() {
  const page = await newPage({ viewport: { width: 1280, height: 860 } });
  await page.goto(scenario.address);
  await settled(page);
  await go(page, scenario.hash);
  await settled(page);
  if (await page.getByLabel("Event", { exact: true }).count() === 0) {
    report.texts.main = await page.locator("main").innerText();
    return;
  }
  await page.getByLabel("Event", { exact: true }).fill(scenario.event);
  const posts = () => report.requests.filter((url) => url.endsWith("/api/signal")).length;
  await page.getByRole("button", { name: "Send…" }).click();
  report.texts.question = await page.locator("dialog").innerText();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  report.sentWithoutConsent = posts();
  await page.getByRole("button", { name: "Send…" }).click();
  await page.locator("dialog button.act").click();
  await page.waitForFunction(() => !document.querySelector("dialog").open);
  await page.waitForTimeout(300);
  report.texts.main = await page.locator("main").innerText();
}

// Another origin's page in the same browser, beside an open console, tries what a page can.
async function stranger() {
  const server = http.createServer((_, response) => response.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>other</title>"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const context = await browser.newContext();
  const own = await context.newPage();
  await own.goto(scenario.address);
  await settled(own);
  const target = new URL(scenario.address).origin;
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  report.tries = await page.evaluate(async (origin) => {
    const tries = {};
    const attempt = async (name, action) => {
      try {
        const response = await action();
        tries[name] = `${response.type} ${response.status}`;
      } catch (error) {
        tries[name] = `failed: ${error.name}`;
      }
    };
    await attempt("read", () => fetch(`${origin}/api/state`));
    await attempt("read the page", () => fetch(`${origin}/`));
    await attempt("read with a key", () => fetch(`${origin}/api/state`, { headers: { "Hangar-Console-Key": "0".repeat(64) } }));
    await attempt("without cors", () => fetch(`${origin}/api/state`, { mode: "no-cors" }));
    await attempt("signal", () => fetch(`${origin}/api/signal`, { method: "POST", mode: "no-cors", body: '{"namespace": "default", "name": "x", "event": "GO"}' }));
    tries.storage = String(sessionStorage.length);
    const frame = document.createElement("iframe");
    frame.src = `${origin}/`;
    document.body.append(frame);
    await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
    const script = document.createElement("script");
    script.src = `${origin}/console.js`;
    tries.script = await new Promise((done) => { script.onload = () => done("loaded"); script.onerror = () => done("refused"); document.body.append(script); });
    const opened = window.open(`${origin}/`);
    await new Promise((done) => setTimeout(done, 1500));
    try {
      tries.window = opened && opened.document && opened.location.href !== "about:blank" ? "readable" : "not readable";
    } catch {
      tries.window = "not readable";
    }
    return tries;
  }, target);
  // Whatever the browser shows in the frame, it is not the console: a page could make its user click there.
  // The error that stands there instead may never answer.
  const late = new Promise((done) => setTimeout(() => done(false), 60_000));
  report.framed = await Promise.all(page.frames().slice(1).map((frame) => Promise.race([late, frame.evaluate(() => document.querySelector("#page") !== null)])));
  server.close();
}

try {
  await { canned, visit, pictures, signal, stranger }[scenario.kind]();
} catch (error) {
  report.problems.push(`the scenario ended: ${error.stack}`);
}
await browser.close();
console.log(JSON.stringify(report));
process.exit(0);
