//! One operator for many behaviours, each chosen by its arguments. A test says there what its guest does, and needs no
//! module of its own.
//!
//! Each argument is a step, `name` or `name=value`; values with several parts have commas between them. The
//! steps are taken in order, and after the last one the guest exits with 0. An argument `--` ends a list of
//! steps and begins another, which is taken at the same time; the guest exits when one of the lists has ended.
//! Steps before the first that waits are part of `_start`, the others of `wakeup`.
//!
//!     print=TEXT              TEXT to standard output
//!     error=TEXT              TEXT to standard error
//!     args                    `args: A B ...`, without the program's name
//!     env=NAME                `NAME=value`, or `NAME is not set`
//!     file=PATH               `PATH: content`, or `PATH: cannot be read: ...`
//!     clock                   `clock: 2026-01-31T...Z`
//!
//!     sleep=MS                waits
//!     wait                    never goes on. With nothing else under way, a host may take that for the end
//!     tick=MS[,COUNT]         `tick K` every MS, K from 1 on; COUNT times, or for ever
//!     events=NAMESPACE,N      waits until N ConfigMaps have been listed or have changed
//!     watch=NAMESPACE         `added|changed|deleted NAME` for every ConfigMap, then for every change, for ever;
//!                             `listed N` after the list, `watch: CODE MESSAGE` when something goes wrong
//!     answer=NAMESPACE,NAME,OTHER  copies key `number` of ConfigMap NAME to ConfigMap OTHER at each change, for ever
//!     count=NAMESPACE,NAME    counts what happens to ConfigMaps, and keeps the count in ConfigMap NAME, key
//!                             `events` (changes of that one do not count; a renewed list does, where it
//!                             differs); `counted K`; for ever
//!
//!     get=PATH                `GET PATH: CODE`, and the message if it is a refusal
//!     request=METHOD,PATH[,BODY]  the same for any request; the body is JSON and may have commas
//!     stream=PATH             `GET PATH: CODE`, then `line: ...` with the first 100 bytes of each line, then
//!                             `end`
//!     requests=COUNT,PATH     COUNT times GET at once, then `requests: N of CODE, ...`. `{n}` in PATH is a number that
//!                             no other request of the guest has
//!     flood=PATH              GET without end, 100 at a time; PATH as in `requests`
//!     header=NAME,VALUE,PATH  GET with a header, and its answer as `get` prints it
//!
//!     heap=KIB                holds so much memory more, with bytes that differ
//!     grow=KIB,MS,MOST        the same every MS until it is MOST KiB; `grown to K KiB`
//!     check                   `heap of K KiB is intact`, or a panic
//!     memory                  takes memory until there is no more, then aborts
//!     log=COUNT               COUNT lines of 100 bytes, to standard output; for ever if COUNT is 0
//!     burn=N                  computes N million steps in each turn and asks to be woken at once, for ever; `burned K`
//!     loop                    never comes back
//!     recurse                 exhausts the stack
//!     panic[=TEXT]            ends in a panic
//!     trap                    ends in a trap without a word
//!     exit=CODE               ends

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::future;
use std::hint;
use std::io::{self, Write};
use std::process;
use std::rc::Rc;
use std::time::Duration;

use hangar_operator::http::{Head, Request};
use hangar_operator::{Api, Error, Event, Key, ObjectMeta, Patch, Resource, Watcher, now, sleep, spawn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, Serialize)]
struct ConfigMap {
    metadata: ObjectMeta,
}

impl Resource for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// A ConfigMap with what is in it.
#[derive(Deserialize, Serialize)]
struct Question {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Resource for Question {
    const API_VERSION: &'static str = ConfigMap::API_VERSION;
    const KIND: &'static str = ConfigMap::KIND;
    const PLURAL: &'static str = ConfigMap::PLURAL;
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

const KIB: usize = 1024;

thread_local! {
    static HEAP: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let lists: Vec<Vec<String>> = arguments
        .split(|argument| argument == "--")
        .map(<[_]>::to_vec)
        .collect();
    for steps in lists {
        hangar_operator::run(async move {
            for step in steps {
                let (name, value) = step.split_once('=').unwrap_or((&step, ""));
                take(name, value).await?;
            }
            Ok::<_, Error>(())
        });
    }
}

async fn take(name: &str, value: &str) -> Result<(), Error> {
    let (first, rest) = value.split_once(',').unwrap_or((value, ""));
    match name {
        "print" => println!("{value}"),
        "error" => eprintln!("{value}"),
        "args" => println!("args: {}", env::args().skip(1).collect::<Vec<_>>().join(" ")),
        "env" => match env::var(value) {
            Ok(content) => println!("{value}={content}"),
            Err(_) => println!("{value} is not set"),
        },
        "file" => match fs::read_to_string(value) {
            Ok(content) => println!("{value}: {content}"),
            Err(error) => println!("{value}: cannot be read: {error}"),
        },
        "clock" => println!("clock: {}", now()),

        "sleep" => sleep(milliseconds(value)).await,
        "wait" => future::pending().await,
        "tick" => tick(milliseconds(first), rest).await,
        "events" => events(first, number(rest)).await?,
        "watch" => watch(value).await,
        "answer" => {
            let (question, answer) = rest.split_once(',').expect("answer=NAMESPACE,NAME,OTHER");
            answer_changes(first, question, answer).await?;
        }
        "count" => count(first, rest).await?,

        "get" => ask(Request::new("GET", value)).await?,
        "request" => request(first, rest).await?,
        "stream" => stream(value).await?,
        "requests" => requests(number(first), rest).await?,
        "flood" => loop {
            requests(100, value).await?;
        },
        "header" => header(first, rest).await?,

        "heap" => hold(number(value)),
        "grow" => grow(number(first), rest).await,
        "check" => check(),
        "memory" => loop {
            hold(1024);
        },
        "log" => log(number(value)),
        "burn" => burn(number(value)).await,
        "loop" => loop {
            hint::spin_loop();
        },
        "recurse" => println!("{}", recurse(1)),
        "panic" => panic!("{value}"),
        "trap" => trap(),
        "exit" => process::exit(value.parse().expect("an exit code")),
        _ => panic!("no step {name}"),
    }
    Ok(())
}

fn number(text: &str) -> usize {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

fn milliseconds(text: &str) -> Duration {
    Duration::from_millis(number(text) as u64)
}

async fn tick(period: Duration, count: &str) {
    let count = if count.is_empty() {
        usize::MAX
    } else {
        number(count)
    };
    for tick in 1..=count {
        sleep(period).await;
        println!("tick {tick}");
    }
}

async fn events(namespace: &str, count: usize) -> Result<(), Error> {
    let mut watcher = Watcher::new(Api::<ConfigMap>::namespaced(namespace));
    let mut seen = 0;
    while seen < count {
        if let Event::InitApply(_) | Event::Apply(_) | Event::Delete(_) = watcher.next().await? {
            seen += 1;
        }
    }
    Ok(())
}

async fn watch(namespace: &str) {
    let mut watcher = Watcher::new(Api::<ConfigMap>::namespaced(namespace));
    let mut listed = 0;
    loop {
        match watcher.next().await {
            Ok(Event::Init) => listed = 0,
            Ok(Event::InitApply(object)) => {
                listed += 1;
                println!("added {}", object.metadata.name);
            }
            Ok(Event::InitDone) => println!("listed {listed}"),
            Ok(Event::Apply(object)) => println!("changed {}", object.metadata.name),
            Ok(Event::Delete(object)) => println!("deleted {}", object.metadata.name),
            Err(error) => println!("watch: {} {error}", error.code().unwrap_or(0)),
        }
    }
}

async fn answer_changes(namespace: &str, question: &str, answer: &str) -> Result<(), Error> {
    let api = Api::<Question>::namespaced(namespace);
    let mut watcher = Watcher::new(api.clone());
    loop {
        let object = match watcher.next().await {
            Ok(Event::InitApply(object) | Event::Apply(object)) if object.metadata.name == question => object,
            Ok(_) => continue,
            Err(error) => {
                eprintln!("answer: {error}");
                continue;
            }
        };
        let wanted = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": answer},
            "data": {"number": object.data.get("number")},
        });
        let patch = Patch::Apply {
            manager: "behave",
            force: true,
            object: &wanted,
        };
        while let Err(error) = api.patch(answer, patch).await {
            eprintln!("answer: {error}");
            sleep(Duration::from_millis(500)).await;
        }
    }
}

/// The task that counts also writes the count: during a write events wait in line, and the next write includes
/// them all.
async fn count(namespace: &str, name: &str) -> Result<(), Error> {
    let api = Api::<ConfigMap>::namespaced(namespace);
    let mut watcher = Watcher::new(api.clone());
    let mut versions: Vec<(Key, String)> = Vec::new();
    let mut counted = 0;
    loop {
        let event = match watcher.next().await {
            Ok(event) => event,
            Err(error) => {
                eprintln!("count: {error}");
                continue;
            }
        };
        let (Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) = event else {
            continue;
        };
        let key = Key::of(&object);
        if key.name == name {
            continue;
        }
        let version = object.metadata.resource_version;
        match versions.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) if *known == version => continue,
            Some((_, known)) => *known = version,
            None => versions.push((key, version)),
        }
        counted += 1;
        let wanted = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"events": counted.to_string()},
        });
        let patch = Patch::Apply {
            manager: "behave",
            force: true,
            object: &wanted,
        };
        while let Err(error) = api.patch(name, patch).await {
            eprintln!("count: {error}");
            sleep(Duration::from_millis(500)).await;
        }
        println!("counted {counted}");
    }
}

async fn request(method: &str, rest: &str) -> Result<(), Error> {
    let method = match method {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => panic!("no method {method}"),
    };
    let (path, body) = rest.split_once(',').unwrap_or((rest, ""));
    let mut request = Request::new(method, path);
    if !body.is_empty() {
        let content_type = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        request = request.with_body(content_type, body.into());
    }
    ask(request).await
}

async fn ask(request: Request) -> Result<(), Error> {
    let asked = format!("{} {}", request.method, request.uri);
    let response = request.send().await?;
    report(&asked, &response.head, &response.body);
    Ok(())
}

async fn header(name: &str, rest: &str) -> Result<(), Error> {
    let (value, path) = rest.split_once(',').expect("header=NAME,VALUE,PATH");
    let mut request = Request::new("GET", path);
    // Once for each step: it leaks some bytes.
    request.headers.push((Box::leak(name.into()), value.into()));
    ask(request).await
}

fn report(asked: &str, head: &Head, body: &[u8]) {
    let status = head.status();
    let message = serde_json::from_slice::<Value>(body).ok();
    match message.as_ref().and_then(|status| status["message"].as_str()) {
        Some(message) if status >= 400 => println!("{asked}: {status} {message}"),
        _ => println!("{asked}: {status}"),
    }
}

async fn stream(path: &str) -> Result<(), Error> {
    let mut stream = Request::new("GET", path).stream().await?;
    report(&format!("GET {path}"), &stream.head, b"");
    while let Some(line) = stream.line().await {
        println!("line: {}", String::from_utf8_lossy(&line[..line.len().min(100)]));
    }
    println!("end");
    Ok(())
}

async fn requests(count: usize, path: &str) -> Result<(), Error> {
    let statuses = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..count {
        let uri = path.replace("{n}", &NUMBER.replace(NUMBER.get() + 1).to_string());
        let (statuses, request) = (statuses.clone(), Request::new("GET", uri));
        spawn(async move {
            let status = request.send().await.map_or(0, |response| response.head.status());
            statuses.borrow_mut().push(status);
        });
    }
    while statuses.borrow().len() < count {
        sleep(Duration::from_millis(10)).await;
    }
    let mut statuses = statuses.take();
    statuses.sort_unstable();
    let counts: Vec<String> = statuses
        .chunk_by(|a, b| a == b)
        .map(|same| format!("{} of {}", same.len(), same[0]))
        .collect();
    println!("requests: {}", counts.join(", "));
    Ok(())
}

/// Known bytes that compress badly.
fn hold(kib: usize) {
    HEAP.with_borrow_mut(|heap| {
        let block = heap.len();
        heap.push((0..kib * KIB).map(|index| byte_of(block, index)).collect());
    });
}

async fn grow(step: usize, rest: &str) {
    let (period, most) = rest.split_once(',').expect("grow=KIB,MS,MOST");
    while held() < number(most) {
        hold(step);
        println!("grown to {} KiB", held());
        sleep(milliseconds(period)).await;
    }
}

fn held() -> usize {
    HEAP.with_borrow(|heap| heap.iter().map(Vec::len).sum::<usize>() / KIB)
}

fn check() {
    HEAP.with_borrow(|heap| {
        for (block, bytes) in heap.iter().enumerate() {
            let wrong = bytes
                .iter()
                .enumerate()
                .position(|(index, byte)| *byte != byte_of(block, index));
            assert_eq!(wrong, None, "block {block} has changed");
        }
    });
    println!("heap of {} KiB is intact", held());
}

fn byte_of(block: usize, index: usize) -> u8 {
    let mixed = (block as u32 ^ index as u32).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8
}

fn log(count: usize) {
    let line = [&[b'x'; 99][..], b"\n"].concat();
    let mut output = io::stdout().lock();
    let mut written = 0;
    while count == 0 || written < count {
        // This step is for hosts that accept no more output.
        let _ = output.write_all(&line);
        written += 1;
    }
}

async fn burn(millions: usize) {
    for turn in 1_u64.. {
        for _ in 0..millions {
            hint::black_box((0..1_000_000_u64).fold(turn, |sum, step| sum.rotate_left(5) ^ step));
        }
        println!("burned {turn}");
        sleep(Duration::ZERO).await;
    }
}

#[allow(unconditional_recursion)] // On purpose.
fn recurse(depth: usize) -> usize {
    let frame = hint::black_box([depth; 64]);
    recurse(frame[63] + 1) + hint::black_box(&frame)[0]
}

#[cfg(target_family = "wasm")]
fn trap() -> ! {
    std::arch::wasm32::unreachable()
}

#[cfg(not(target_family = "wasm"))]
fn trap() -> ! {
    process::abort()
}
