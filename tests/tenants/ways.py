"""The ways in which a tenant may try to harm others: one table, `WAYS`.

Each way is a generator that receives the attacker. It begins the attack and yields a function that says how far the attack
has got (0: it has not begun). After the victim's rounds it is resumed, and asserts the claims of this way in particular;
test_attacks.py has the claims of every way. `enough` is how far an attack has to get to do its harm; if a host lets it get
there only slowly, the test does not wait for it.

`baseline` is the effect of the way on the last version without these defences: "seen" (it did the harm), or "guard" (that
version held as well; the way is here so that later ones do).
"""
import base64
import collections
import dataclasses
import gzip
import hashlib
import http.client
import http.server
import itertools
import json
import pathlib
import random
import ssl
import threading
import typing

import hostile
import operators
import workflows
from airways import flight
from cluster import ApiError, condition, eventually
from stage import config_map
from tenant import assembled, wat
from victim import private_module

KIB = 1 << 10


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    attacks: str  # The resource, or the boundary.
    how: str
    holds: str
    baseline: str
    begin: typing.Callable
    # A neighbour's new operator has to start meanwhile, too.
    stops_newcomers: bool = False
    enough: int = 1


WAYS = []


def way(attacks, how, holds, baseline, **options):
    assert baseline in ("seen", "guard")

    def add(begin):
        WAYS.append(Way(begin.__name__, attacks, how, holds, baseline, begin, **options))
        return begin
    return add


def lines_of(attacker, *names):
    """How far: the lines that those operators have printed."""
    return lambda: sum(len(attacker.printed(name)) for name in names)


def noticed(attacker, *names):
    """How far: how many of those Operators the host has reported something about."""
    return lambda: sum(attacker.is_noticed(name) for name in names)


def stalled(attacker, name, kind=operators.OPERATOR, seconds=60):
    """The message of the condition Stalled, once it is True."""
    def told():
        seen = condition(attacker.cluster.get(*kind, name, attacker.namespace), "Stalled")
        return seen.get("message") if seen.get("status") == "True" else None
    return eventually(told, f"{name} is stalled", seconds)


def answers(attacker, steps, name="asks", **spec):
    """Begins an operator that takes these steps, all at once, and returns its output. Each prints one line."""
    lists = [word for step in steps for word in (step, "wait", "--")]
    attacker.operator(name, *lists[:-1], limits={"requestsPerSecond": 1000}, **spec)
    return eventually(lambda: (lambda seen: seen if len(seen) == len(steps) else None)(attacker.printed(name)),
                      f"{name} has {len(steps)} answers", 120)


def code_of(line):
    """The status in `GET /path: 403 message`. The path may have colons."""
    words = line.split(": ")
    return next(int(word.split()[0]) for word in words[1:] if word.split()[0].isdigit())


def answered(attacker):
    """How far: the requests of its guests that were answered, as the host counts them."""
    def count():
        return sum(attacker.get(one["metadata"]["name"]).get("status", {}).get("requests", 0)
                   for one in attacker.cluster.list(*operators.OPERATOR, attacker.namespace))
    return count


def told(attacker, reason, text):
    """An Event of its namespace has that reason, and that text in its message."""
    events = attacker.cluster.list("v1", "Event", attacker.namespace)
    return any(one.get("reason") == reason and text in (one.get("message") or one.get("note") or "") for one in events)


def large_config_maps(attacker, count, kib=300):
    for index in range(count):
        attacker.config_map(f"large-{index:03}", text="x" * kib * KIB)


# Reading what is not one's own --------------------------------------------------------------------


SPELLINGS = ("configmap://victim/{}", "ConfigMap://victim/{}", "CONFIGMAP://victim/{}", "cONFIGMAP://victim/{}/", "configMap://victim/{}/" + "x")


@way("other namespaces' ConfigMaps", "names them as a module's URL, in all spellings of the scheme",
     "the spec is refused, nothing of the ConfigMap is told or kept", "seen")
def config_map_urls(attacker):
    for index, spelling in enumerate(SPELLINGS):
        for what in ("private", "module", "machine"):
            url = spelling.format(what)
            attacker.operator(f"reads-{what}-{index}", module={"url": url})
            attacker.workflow(f"reads-{what}-{index}", module={"url": url})
    names = [f"reads-{what}-{index}" for index in range(len(SPELLINGS)) for what in ("private", "module", "machine")]
    yield noticed(attacker, *names)
    for name in names:
        assert "victim" not in stalled(attacker, name).replace("configmap://victim", "")
        stalled(attacker, name, workflows.WORKFLOW)
        assert operators.phase(attacker.get(name)) == "Failed"


@way("other namespaces' ConfigMaps", "names them as the plugin that a machine is linked with",
     "the spec is refused, nothing of the ConfigMap is told", "guard")
def config_map_plugin(attacker):
    attacker.module("linked", assembled(hostile.prints("{}")))
    for index, spelling in enumerate(SPELLINGS):
        attacker.workflow(f"links-{index}", "linked", plugin={"url": spelling.format("private")})
    names = [f"links-{index}" for index in range(len(SPELLINGS))]
    yield lambda: sum(bool(attacker.workflow_status(name)) for name in names)
    for name in names:
        assert attacker.victim.mark not in stalled(attacker, name, workflows.WORKFLOW)


@way("the scope of a read", "asks for a cluster-scoped kind below its own namespace, where a Role may allow it",
     "the API server's own answer: there is no such path", "seen")
def cluster_scope_below_a_namespace(attacker):
    own = f"/api/v1/namespaces/{attacker.namespace}/namespaces"
    asked = [f"{own}{rest}{query}" for rest in ("", "/victim", f"/{attacker.namespace}") for query in ("", "?resourceVersion=0", "?watch=true")
             if not (rest and "watch" in query)]
    seen = answers(attacker, [f"get={path}" for path in asked if "watch" not in path])
    yield lambda: len(seen)
    assert {code_of(line) for line in seen} <= {400, 403, 404}, seen


@way("the path of a request", "walks out of its namespace: dots, slashes, escapes, other hosts, other verbs' paths, forged continue tokens",
     "no answer but a refusal", "guard")
def paths_out_of_the_namespace(attacker):
    own = f"/api/v1/namespaces/{attacker.namespace}"
    paths = [f"{own}/../victim/secrets", f"{own}/%2e%2e/victim/secrets", f"{own}/..%2fvictim/secrets", f"{own}//../victim/configmaps/private",
             "/api/v1/namespaces/victim%2fsecrets", "/api/v1/namespaces/victim/secrets/private", "/api//v1/namespaces/victim/configmaps",
             "/api/v1/secrets", "/api/v1/configmaps?resourceVersion=0", "/api/v1/namespaces/%76ictim/secrets?resourceVersion=0",
             f"{own}/../../secrets", "/api/v1/namespaces/*/secrets", "/api/v1/namespaces//secrets", f"{own}%00/../victim/secrets",
             f"{own};/../victim/secrets", f"/api/v1/namespaces/{attacker.namespace},victim/secrets", f"{own}/configmaps/../../victim/configmaps/private",
             f"{own}/configmaps/..%2f..%2fvictim%2fconfigmaps%2fprivate", "https://victim/api/v1/namespaces/victim/secrets",
             "http://x@127.0.0.1/api/v1/namespaces/victim/configmaps?resourceVersion=0", "/api/v1/watch/namespaces/victim/secrets",
             "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dvictim&resourceVersion=0", "/openapi/../api/v1/namespaces/victim/secrets",
             "/apis/../api/v1/namespaces/victim/configmaps/private", "/api/v1/proxy/namespaces/victim/services/x/", "/api/v1/namespaces/victim"]
    seen = answers(attacker, [f"get={path}" for path in paths])
    yield lambda: len(seen)
    wrong = [line for line in seen if code_of(line) not in (301, 307, 308, 400, 403, 404, 405)]
    assert not wrong


@way("the headers of a request", "sends headers that would make it somebody else", "they do not reach the API server", "guard")
def headers_of_identity(attacker):
    path = "/api/v1/namespaces/victim/configmaps/private"
    headers = ["impersonate-user,system:admin", "impersonate-group,system:masters", "impersonate-uid,0", "authorization,Bearer x",
               "x-remote-user,system:admin", "x-remote-group,system:masters", "x-forwarded-for,127.0.0.1", "connection,upgrade",
               "transfer-encoding,chunked", "host,victim", "impersonate-extra-scopes,all"]
    seen = answers(attacker, [f"header={header},{path}" for header in headers])
    yield lambda: len(seen)
    assert {code_of(line) for line in seen} <= {400, 403}, seen


@way("other tenants' modules", "knows the sha256 of one and says that its own source has it", "it does not run: the source is asked", "seen")
def known_digest(attacker):
    private = hashlib.sha256(gzip.decompress(attacker.victim.module)).hexdigest()
    attacker.config_map("empty", text="")
    attacker.operator("missing", "print=stolen", "wait", module={"configMap": {"name": "missing"}, "sha256": private})
    attacker.operator("empty", "print=stolen", "wait", module={"configMap": {"name": "empty"}, "sha256": private})
    attacker.operator("elsewhere", "print=stolen", "wait", module={"url": "http://127.0.0.1:1/module", "sha256": private})
    attacker.operator("registry", "print=stolen", "wait", module={"url": "oci://127.0.0.1:1/module:v1", "sha256": private, "insecure": True})
    names = ("missing", "empty", "elsewhere", "registry")
    yield noticed(attacker, *names)
    for name in names:
        stalled(attacker, name)
        assert attacker.printed(name) == []


class Listener:
    """An HTTP server on the host's machine; `asked` lists its clients."""

    def __init__(self, answer=None):
        self.asked = []
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                listener.asked.append(self.path)
                if answer:
                    answer(self)
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"internal")

            do_HEAD = do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@way("what only the host can reach", "gives URLs of loopback, link-local and private addresses as modules, in all spellings",
     "nobody is asked, and the status of an open port says the same as that of a closed one", "seen")
def internal_addresses(attacker):
    listener = Listener()
    port = listener.port
    hosts = ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1."]
    try:
        for index, host in enumerate(hosts):
            attacker.operator(f"open-{index}", module={"url": f"http://{host}:{port}/module.wasm", "insecure": True})
            attacker.workflow(f"open-{index}", module={"url": f"http://{host}:{port}/workflow.wasm", "insecure": True})
            attacker.operator(f"registry-{index}", module={"url": f"oci://{host}:{port}/repository:v1", "insecure": True})
        attacker.operator("closed-0", module={"url": "http://127.0.0.1:1/module.wasm", "insecure": True})
        attacker.operator("metadata", module={"url": "http://169.254.169.254/latest/meta-data", "insecure": True})
        names = ["closed-0", "metadata", *(f"open-{index}" for index in range(len(hosts)))]
        yield noticed(attacker, *names)
        for name in names:
            stalled(attacker, name, seconds=120)
        assert listener.asked == []
        assert stalled(attacker, "open-0").replace(f":{port}", ":1") == stalled(attacker, "closed-0")
    finally:
        listener.close()


@way("other namespaces' Secrets", "names them in env and files: with slashes, dots and prefixes", "the guest is not started with them", "guard")
def secrets_of_others(attacker):
    names = ("private", "../victim/private", "victim/private", "..%2fvictim%2fprivate", "../../namespaces/victim/secrets/private")
    for index, name in enumerate(names):
        reference = {"name": name, "key": attacker.victim.mark[:4], "optional": index % 2 == 0}
        attacker.operator(f"env-{index}", "env=STOLEN", env=[{"name": "STOLEN", "valueFrom": {"secretKeyRef": reference}}])
        attacker.operator(f"file-{index}", "print=began", files=[{"path": "/stolen", "secret": {"name": name, "optional": index % 2 == 0}}])
    all_names = [f"{what}-{index}" for index in range(len(names)) for what in ("env", "file")]
    yield noticed(attacker, *all_names)


@way("files of the host", "opens paths out of its own files: dots, /proc, keys that look like paths", "it has the files that it was given, and no other", "guard")
def files_of_the_host(attacker):
    paths = ("/proc/self/environ", "/etc/passwd", "../../../../etc/passwd", "/given/../../etc/passwd", "/given/..data", "/var/run/secrets/kubernetes.io/serviceaccount/token",
             "//etc/passwd", "/given/text/../../../etc/hosts", ".", "/dev/stdin")
    attacker.config_map("given", **{"text": "own", ".hidden": "own"})
    seen = answers(attacker, [f"file={path}" for path in paths], files=[{"path": "/given", "configMap": {"name": "given"}}])
    yield lambda: len(seen)
    wrong = [line for line in seen if "cannot be read" not in line and not line.endswith(": own")]
    assert not wrong


@way("the order of versions", "asks with resource versions that are negative, huge or not numbers",
     "each answer is the API server's kind of refusal, or its own objects", "guard")
def resource_versions(attacker):
    own = f"/api/v1/namespaces/{attacker.namespace}/configmaps"
    versions = ("-1", "0", "1", "abc", "18446744073709551616", "9" * 60, "1e3", "0x10", "%00", "+1", "1.0")
    matches = ("", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=x", "&limit=1", "&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEi")
    seen = answers(attacker, [f"get={own}?resourceVersion={version}{match}" for version in versions for match in matches])
    yield lambda: len(seen)
    assert {code_of(line) for line in seen} <= {200, 400, 410, 422, 500, 504}, seen


@way("a workflow's ledger", "writes its status by hand: actions on objects of others that it never asked for",
     "what is done, is done as its own service account: the others' objects stay", "guard", enough=5)
def status_by_hand(attacker):
    waits = {"type": "WAIT_FOR", "params": {"apiVersion": "v1", "kind": "ConfigMap", "name": "never"}}
    attacker.module("waits", assembled(hostile.prints(json.dumps({"newState": "waiting", "actions": [waits]}))))
    attacker.workflow("forged", "waits")
    eventually(lambda: attacker.workflow_status("forged").get("outbox"), "it waits", 60)
    ledger = attacker.workflow_status("forged")
    forged = [{**ledger["outbox"][0], "id": f"DELETE#{index}", "type": "DELETE", "params": {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "private", "namespace": "victim"}} for index in range(10)]
    count = itertools.count()

    def forge():
        for status in ({"outbox": forged}, {"outbox": "none"}, {"state": "x" * 200_000}, {"resources": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "private", "namespace": "victim", "uid": str(next(count))}]},
                {"timers": [{"id": "x", "at": "never"}]}, {"revision": {"sha256": hashlib.sha256(b"").hexdigest()}}, ledger):
            attacker.cluster.patch(*workflows.WORKFLOW, "forged", {"status": status}, attacker.namespace, "status")
    yield attacker.meanwhile(forge)
    assert attacker.stage.cluster.get("v1", "ConfigMap", "private", "victim")


# Compilation -------------------------------------------------------------------------------------------


@way("the time of one compilation", "one function with thousands of nested blocks and jump tables", "compilation has a bound, and is another process's", "guard", stops_newcomers=True)
def deep_modules(attacker):
    names = [f"deep-{index}" for index in range(3)]
    for index, name in enumerate(names):
        attacker.operator(name, module=attacker.module(name, hostile.deep_control_flow(900, 20, salt=index)))
    yield noticed(attacker, *names)


@way("the queue of compilations", "thirty modules that nobody has had before, each of four megabytes", "compilations are fair by namespace, small modules first",
     "seen", stops_newcomers=True)
def many_modules(attacker):
    puppet = pathlib.Path(flight(operators.BEHAVE)).read_bytes()
    names = [f"new-{index}" for index in range(30)]
    for index, name in enumerate(names):
        attacker.operator(name, "wait", module=attacker.module(name, puppet + hostile.salted(index)))
    yield noticed(attacker, *names)


@way("looks at a module's source", "a module in a ConfigMap that is another one several times a second", "one look at a time; the last one wins", "guard", enough=20)
def module_that_changes_all_the_time(attacker):
    puppet = pathlib.Path(flight(operators.BEHAVE)).read_bytes()
    packed = [gzip.compress(puppet + hostile.salted(index), compresslevel=1) for index in range(8)]
    for index in range(4):
        attacker.operator(f"changes-{index}", "wait", module=attacker.module(f"changes-{index}", packed=packed[0]))
    numbers = itertools.count(1)

    def change():
        number = next(numbers)
        attacker.module(f"changes-{number % 4}", packed=packed[number % len(packed)])
    yield attacker.meanwhile(change)


@way("unpacking", "bytes that are gzip of gigabytes of zeros, and gzip within gzip", "unpacking has a bound", "guard")
def compression_bombs(attacker):
    zeros = gzip.compress(bytes(600 << 20), compresslevel=9)
    for index, packed in enumerate((zeros, gzip.compress(zeros), zeros[:-8], gzip.compress(b"\0asm\1\0\0\0") + zeros)):
        attacker.operator(f"bomb-{index}", module=attacker.module(f"bomb-{index}", packed=packed))
    names = [f"bomb-{index}" for index in range(4)]
    yield noticed(attacker, *names)
    for name in names:
        stalled(attacker, name, seconds=120)


@way("memory of fetches", "modules of a megabyte that inflate to two hundred", "what is fetched, read or compiled is memory too, and waits until it fits",
     "seen", enough=6)
def modules_that_inflate(attacker):
    names = [f"inflates-{index}" for index in range(6)]
    for index, name in enumerate(names):
        attacker.operator(name, module=attacker.module(name, packed=gzip.compress(hostile.padded(200 << 20, index), compresslevel=9)))
    yield noticed(attacker, *names)


# Memory and disk ------------------------------------------------------------------------------------------


@way("the memory of all guests", "twelve operators that each take what one may have", "who does not fit waits, and says for what", "seen", enough=12)
def memory_of_all_guests(attacker):
    names = [f"takes-{index}" for index in range(12)]
    for name in names:
        attacker.operator(name, "heap=180000", "print=took", "wait", limits={"memory": "256Mi"}, sleep={"policy": "Never"})
    yield noticed(attacker, *names)


@way("the memory of all guests", "modules of two kilobytes whose tables grow to millions of elements", "tables count as memory", "seen")
def tables_that_grow(attacker):
    for name in ("tables_grow", "many_tables", "large_table", "table_bomb"):
        module = attacker.module(name.replace("_", "-"), wat(name))
        for index in range(3):
            attacker.operator(f"{name.replace('_', '-')}-{index}", module=module, limits={"memory": "1Mi"})
    yield noticed(attacker, "tables-grow-0", "many-tables-0", "large-table-0", "table-bomb-0")


@way("the disk of sleepers", "operators whose memory differs in each page, woken and sent to sleep all the time", "what sleeps has a bound, and gives its place back",
     "guard", enough=20)
def images_that_differ(attacker):
    names = [f"differs-{index}" for index in range(8)]
    for name in names:
        attacker.operator(name, f"watch={attacker.namespace}", "--", "grow=4000,200,48000", "wait", sleep={"after": "1s"})
    numbers = itertools.count()
    yield attacker.meanwhile(lambda: attacker.cluster.apply(config_map("wakes", attacker.namespace, number=str(next(numbers)))))


# The loop and the cache ------------------------------------------------------------------------------------


@way("the loop, by selectors", "lists sixty objects of 300 KB by a selector that fits none, again and again", "labels are read without a document, in slices", "seen", enough=200)
def lists_by_selector(attacker):
    large_config_maps(attacker, 60)
    path = f"/api/v1/namespaces/{attacker.namespace}/configmaps?resourceVersion=0&labelSelector=none%3D{{n}}"
    for index in range(5):
        attacker.operator(f"selects-{index}", f"flood={path}", limits={"requestsPerSecond": 1000})
    yield answered(attacker)


@way("the cache, by definitions", "creates a hundred Operators of a megabyte, which the host watches for itself",
     "definitions count for the memory of their namespace; without room, only what identifies one is kept, and its status says so", "guard", enough=100)
def definitions_of_a_megabyte(attacker):
    text = base64.b64encode(random.Random(7).randbytes(750 * KIB)).decode()  # It does not compress.
    names = [f"large-{index:03}" for index in range(100)]
    for name in names:
        attacker.operator(name, text, module={"configMap": {"name": "none"}})
    yield lambda: len(names)

    def waits():
        return next((name for name in names[-5:] if condition(attacker.get(name), "Ready").get("reason") == "NamespaceMemory"), None)
    last = eventually(waits, "one of the last waits for memory", 120)
    assert "no memory for this object" in condition(attacker.get(last), "Stalled")["message"]
    for name in names[:50]:
        attacker.cluster.delete(*operators.OPERATOR, name, attacker.namespace)
    eventually(lambda: condition(attacker.get(last), "Ready").get("reason") not in (None, "NamespaceMemory"), "it is looked at once there is room", 120)


@way("the loop, by long answers", "lists sixty objects of 300 KB whole, ten operators at once", "answers are made in slices, and what waits for a guest has a bound", "guard", enough=20)
def lists_of_everything(attacker):
    large_config_maps(attacker, 60)
    path = f"/api/v1/namespaces/{attacker.namespace}/configmaps?resourceVersion=0"
    for index in range(10):
        attacker.operator(f"lists-{index}", f"flood={path}", limits={"requestsPerSecond": 1000})
    yield answered(attacker)


@way("watches", "watches by a field selector that nobody has had, hundreds of times", "a namespace has so many watches of its own, and no more", "seen", enough=5)
def watches_by_field(attacker):
    for index in range(5):
        lists = [word for number in range(60) for word in
                 (f"stream=/api/v1/namespaces/{attacker.namespace}/configmaps?watch=true&fieldSelector=metadata.name%3Dx{index}-{number}", "wait", "--")]
        attacker.operator(f"watches-{index}", *lists[:-1], limits={"requestsPerSecond": 1000})
    yield noticed(attacker, *(f"watches-{index}" for index in range(5)))


@way("watches that fail", "asks for kinds that there are not, and for those that it may not see, without end", "what failed counts for who asked, and is not repeated for ever",
     "seen", enough=200)
def watches_of_nothing(attacker):
    # Only what the review allows is looked for by the host.
    attacker.may_do_everything()
    path = f"/apis/none{{n}}.example.com/v1/namespaces/{attacker.namespace}/nothings?watch=true"
    attacker.operator("nothing", f"flood={path}", limits={"requestsPerSecond": 1000})
    attacker.operator("forbidden", "flood=/api/v1/namespaces/victim/secrets?resourceVersion=0&labelSelector=a%3D{n}", limits={"requestsPerSecond": 1000})
    yield answered(attacker)


@way("initial states of watches", "begins watches with their initial state, as informers do, hundreds of times, of sixty objects of 300 KB",
     "the newest state is learned from names alone, once for all that wait, and the objects come from the cache", "seen", enough=5)
def watch_list_floods(attacker):
    large_config_maps(attacker, 60)
    path = (f"/api/v1/namespaces/{attacker.namespace}/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            "&allowWatchBookmarks=true")
    names = [f"begins-{index}" for index in range(5)]
    for name in names:
        lists = [word for _ in range(60) for word in (f"stream={path}", "wait", "--")]
        attacker.operator(name, *lists[:-1], limits={"requestsPerSecond": 1000})
    yield noticed(attacker, *names)


@way("answers that wait", "lists sixty objects of 300 KB in twenty operators whose turns are long",
     "answers that wait count for their namespace and the host: the operators are restarted, and told why", "seen", enough=20)
def answers_that_wait_of_many_operators(attacker):
    large_config_maps(attacker, 60)
    names = [f"waits-{index}" for index in range(20)]
    path = f"/api/v1/namespaces/{attacker.namespace}/configmaps"
    for name in names:
        # Each asks for less than one guest may have waiting.
        attacker.operator(name, *[f"requests=2,{path}"] * 20, "--", "burn=500", limits={"requestsPerSecond": 1000})
    yield noticed(attacker, *names)
    eventually(lambda: told(attacker, "GuestFailed", "memory for the answers"), "an Event says what there is no memory for", 120)


@way("slots of reviews", "as forty service accounts, each asks for something else each time, with a selector too long to be remembered",
     "reviews take slots of their namespace, and those that wait have a bound", "seen", enough=200)
def reviews_of_long_attributes(attacker):
    selector = ",".join(f"k{index}%21%3D{'v' * 60}" for index in range(20))
    for index in range(40):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"account-{index}", "namespace": attacker.namespace}}
        attacker.cluster.create(account)
        path = f"/api/v1/namespaces/{attacker.namespace}/configmaps?watch=true&timeoutSeconds=1&labelSelector=n%21%3Dn{{n}},{selector}"
        attacker.operator(f"asks-{index}", f"flood={path}", serviceAccountName=f"account-{index}", limits={"requestsPerSecond": 1000})
    yield answered(attacker)


@way("reviews that are kept", "as forty service accounts, each asks for something else each time", "reviews under way and kept have a bound for a namespace", "guard", enough=200)
def reviews_without_end(attacker):
    for index in range(40):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"account-{index}", "namespace": attacker.namespace}}
        attacker.cluster.create(account)
        path = f"/api/v1/namespaces/{attacker.namespace}/configmaps/name-{{n}}?resourceVersion=0"
        attacker.operator(f"asks-{index}", f"flood={path}", serviceAccountName=f"account-{index}", limits={"requestsPerSecond": 1000})
    yield answered(attacker)


# Budgets of its policy -----------------------------------------------------------------------------------


def usage_of(attacker, part):
    """What the TenantUsage of its namespace says of that budget."""
    usages = attacker.cluster.request("GET", f"/apis/hangar.dev/v1alpha1/namespaces/{attacker.namespace}/tenantusages")["items"]
    return next((one["status"].get(part, {}) for one in usages if "status" in one), {})


@way("the budget of processor time", "twenty operators that compute all the time, in a namespace that may use a tenth of a core",
     "its own work waits for its rate and says so, nobody else's does", "guard", enough=20)
def burners_with_a_budget(attacker):
    attacker.bounded(cpu="100m")
    names = [f"burns-{index}" for index in range(20)]
    for name in names:
        attacker.operator(name, "burn=200", sleep={"policy": "Never"})
    yield noticed(attacker, *names)

    def series(namespace):
        return attacker.stage.host.metrics().get(f'hangar_guest_cpu_braked_seconds_total{{namespace="{namespace}"}}', 0)
    eventually(lambda: series(attacker.namespace) > 0, "the attacker is braked", 120)
    assert series("victim") == 0
    eventually(lambda: any(condition(attacker.get(name), "WaitingForProcessorTime").get("status") == "True" for name in names),
               "an operator says that it waits", 120)


@way("the budget of output", "prints without end, ten operators at once, in a namespace that may print 16 KiB a second",
     "the budget is kept, the rest is dropped before it reaches the disk", "guard", enough=10)
def printers_with_a_budget(attacker):
    attacker.bounded(output="16Ki")
    names = [f"prints-{index}" for index in range(10)]
    for name in names:
        attacker.operator(name, "log=0")
    yield noticed(attacker, *names)
    told = eventually(lambda: (lambda use: use if use.get("used", 0) > 0 else None)(usage_of(attacker, "output")), "its usage is told", 120)
    # A burst of four seconds' worth counts as well in a period of 15 seconds.
    assert told["limit"] == 16 * KIB and told["used"] <= 2 * 16 * KIB, told


@way("the budget of modules on disk", "names sixty modules of a megabyte that nobody has had before, in a namespace whose modules may take eight megabytes",
     "what it has not used for longest goes, and nothing of the victim", "guard", enough=60)
def modules_with_a_budget(attacker):
    attacker.bounded(moduleDisk="8Mi")
    stored = attacker.stage.host.directory / "cache/modules" / f"{hashlib.sha256(gzip.decompress(attacker.victim.module)).hexdigest()}.wasm.gz"
    assert stored.exists(), "the victim's module is cached"

    def charged(namespace):
        return attacker.stage.host.metrics().get(f'hangar_module_disk_bytes{{namespace="{namespace}"}}', 0)
    names = [f"large-{index}" for index in range(60)]
    for name in names:
        attacker.operator(name, module=attacker.module(name, packed=gzip.compress(hostile.incompressible(900 * KIB), compresslevel=1)))
    yield noticed(attacker, *names)
    eventually(lambda: charged(attacker.namespace) > 4096 * KIB, "the attacker's modules are charged", 120)
    assert charged(attacker.namespace) <= 8192 * KIB
    assert stored.exists() and charged("victim") > 0


@way("a compilation that two namespaces want", "wants the victim's next module, too, behind thirty that nobody has had before",
     "the module waits in the line of each namespace that wants it", "guard")
def shared_module_behind_many(attacker):
    shared = private_module(f"shared by {attacker.namespace}")
    puppet = pathlib.Path(flight(operators.BEHAVE)).read_bytes()
    names = [f"first-{index}" for index in range(30)]
    for index, name in enumerate(names):
        attacker.operator(name, "wait", module=attacker.module(name, puppet + hostile.salted(f"{attacker.namespace} {index}")))
    attacker.operator("shared", "print=shared", module=attacker.module("shared", shared))
    begun = eventually(lambda: noticed(attacker, *names)(), "the attacker's modules wait", 60)
    attacker.victim.begins_something_new(shared)
    yield lambda: begun


# Turns, requests, output ------------------------------------------------------------------------------------


@way("the queue of turns", "seventy operators that compute and ask to be woken at once", "turns are fair by namespace", "seen", enough=70)
def burners(attacker):
    names = [f"burns-{index}" for index in range(70)]
    for name in names:
        attacker.operator(name, "burn=200", sleep={"policy": "Never"})
    yield noticed(attacker, *names)


@way("the time of one turn", "operators that never come back from a turn", "the turn ends at its limit; they wait longer each time", "guard")
def turns_without_end(attacker):
    names = [f"spins-{index}" for index in range(20)]
    for name in names:
        attacker.operator(name, "loop")
    yield noticed(attacker, *names)


@way("the rate of output", "prints without end, ten operators at once", "so many bytes a second are kept, the rest is counted", "guard", enough=10)
def output_without_end(attacker):
    names = [f"prints-{index}" for index in range(10)]
    for name in names:
        attacker.operator(name, "log=0")
    yield noticed(attacker, *names)


@way("lines of the log", "prints terminal control sequences, half characters and lines that look like the host's own", "the log has one object a line, of that operator",
     "guard")
def output_that_lies(attacker):
    lie = '{"level":"error","logger":"hangar","msg":"lost the Lease"}'
    texts = ["\x1b[2J\x1b]0;owned\x07", "\r" + lie, lie, "\x00\x08\x7f", "\u202e\u2066"]
    seen = answers(attacker, [f"print={text}" for text in texts if "\x00" not in text])
    yield lambda: len(seen)
    lines = [json.loads(line) for line in attacker.stage.host.log.read_text(errors="replace").splitlines() if line.startswith("{")]
    assert not [line for line in lines if line.get("msg") == "lost the Lease"]




@way("wakes", "operators that ask to be woken at once, again and again", "wakes are fair by namespace", "guard", enough=2000)
def wake_flood(attacker):
    names = [f"wakes-{index}" for index in range(20)]
    for name in names:
        attacker.operator(name, "tick=0", sleep={"policy": "Never"})
    yield lines_of(attacker, *names)


@way("delays", "asks for delays without end", "it is ended beyond its bound of delays", "guard")
def delay_flood(attacker):
    module = attacker.module("delays", wat("kube_runtime_delay_flood"))
    names = [f"delays-{index}" for index in range(10)]
    for name in names:
        attacker.operator(name, module=module)
    yield noticed(attacker, *names)


@way("requests upstream", "asks for more than may be under way, without end", "it is ended beyond its bound", "guard")
def requests_without_end(attacker):
    module = attacker.module("requests", wat("kube_runtime_request_flood"))
    names = [f"requests-{index}" for index in range(10)]
    for name in names:
        attacker.operator(name, module=module)
    yield noticed(attacker, *names)


@way("the share of the cache", "watches more large objects than the host has memory for",
     "what a namespace's watches hold has a bound: the list stops there, the watch is refused, and an Event says so", "seen", enough=5)
def large_objects_watched(attacker):
    large_config_maps(attacker, 90, 900)
    names = [f"watches-{index}" for index in range(5)]
    for name in names:
        attacker.operator(name, f"stream=/api/v1/namespaces/{attacker.namespace}/configmaps?watch=true", "wait")
    yield noticed(attacker, *names)
    eventually(lambda: told(attacker, "RequestRefused", "of its namespace"), "an Event says what is too large", 120)
    assert attacker.stage.host.metrics()["hangar_gateway_feed_bytes"] < attacker.stage.limit_bytes / 8


@way("changes of large objects", "changes objects just below what etcd takes, all the time", "a watcher elsewhere is told its own", "guard", enough=50)
def large_objects_that_change(attacker):
    large_config_maps(attacker, 4, 900)
    attacker.operator("watches", f"watch={attacker.namespace}")
    numbers = itertools.count()

    def change():
        number = next(numbers)
        attacker.cluster.patch("v1", "ConfigMap", f"large-{number % 4:03}", {"data": {"number": str(number)}}, attacker.namespace)
    yield attacker.meanwhile(change)


# What is the host's in a tenant's namespace -----------------------------------------------------------------


@way("service accounts", "names service accounts of other namespaces, of the host and of the system", "it acts as an account of its own namespace or not at all", "guard")
def accounts_of_others(attacker):
    accounts = ("victim:default", "victim/default", "system:serviceaccount:victim:default", "../victim/default", "hangar", "system:masters")
    names = []
    for index, account in enumerate(accounts):
        try:
            attacker.operator(f"acts-{index}", "get=/api/v1/namespaces/victim/configmaps/private", "wait", serviceAccountName=account)
            names.append(f"acts-{index}")
        except ApiError as error:
            assert error.status == 422
        try:
            attacker.workflow(f"acts-{index}", "puppet", serviceAccountName=account)
        except ApiError as error:
            assert error.status == 422
    yield noticed(attacker, *names)
    assert not [line for name in names for line in attacker.printed(name) if ": 200" in line]


@way("copies of modules", "makes ControllerRevisions that look like the host's copies, with other bytes", "a copy is believed by its digest only", "guard", enough=5)
def forged_copies(attacker):
    attacker.machine("responder", workflows.bundle("responder"))
    attacker.workflow("copied", "responder", input={"answer": "copied"})
    revisions = ("apps/v1", "ControllerRevision")
    eventually(lambda: attacker.cluster.list(*revisions, attacker.namespace), "the host keeps a copy", 60)
    numbers = itertools.count()

    def forge():
        for copy in attacker.cluster.list(*revisions, attacker.namespace):
            forged = {**copy, "apiVersion": revisions[0], "kind": revisions[1], "data": {"text": "eA==", "number": next(numbers)}}
            attacker.cluster.delete(*revisions, copy["metadata"]["name"], attacker.namespace)
            forged["metadata"] = {key: value for key, value in copy["metadata"].items() if key in ("name", "namespace", "labels", "annotations")}
            attacker.cluster.create(forged)
            workflows.signal(attacker.cluster, attacker.namespace, "copied", f"ask-{next(numbers)}", {"type": "ASK", "number": 1})
    yield attacker.meanwhile(forge)


@way("what is told of use", "writes and deletes the TenantUsage of its namespace", "the host's figures come back, and count nobody else", "guard", enough=20)
def usage_by_hand(attacker):
    usages = "/apis/hangar.dev/v1alpha1/namespaces/{}/tenantusages".format(attacker.namespace)
    attacker.operator("waits", "wait")

    def forge():
        for one in attacker.cluster.request("GET", usages)["items"]:
            name = one["metadata"]["name"]
            status = {"status": {"guestMemory": {"reserved": "-1", "limit": "9999Ti"}, "operators": {"count": -1}}}
            attacker.cluster.request("PATCH", f"{usages}/{name}/status", status, "application/merge-patch+json")
            attacker.cluster.request("DELETE", f"{usages}/{name}")
    yield attacker.meanwhile(forge)


# Definitions ---------------------------------------------------------------------------------------------


@way("the queue of reconciles", "creates and deletes Operators as fast as the API server takes them", "a neighbour's new operator starts meanwhile", "guard", stops_newcomers=True, enough=200)
def definitions_that_come_and_go(attacker):
    numbers = itertools.count()

    def churn():
        name = f"churn-{next(numbers)}"
        attacker.operator(name, "wait")
        attacker.cluster.delete(*operators.OPERATOR, name, attacker.namespace)
    attacker.meanwhile(churn)
    yield attacker.meanwhile(churn)


@way("deletion", "two hundred Operators whose finalizers nobody takes off, being deleted", "they are stopped, and cost nobody anything", "guard")
def finalizers_that_stay(attacker):
    names = [f"stays-{index}" for index in range(200)]
    for name in names:
        attacker.operator(name, "wait", metadata={"finalizers": ["example.com/never"]})
    for name in names:
        attacker.cluster.delete(*operators.OPERATOR, name, attacker.namespace)
    yield lambda: sum("deletionTimestamp" in attacker.get(name)["metadata"] for name in names[:5])


@way("back-off of restarts", "fifty operators that end at once, each time they are started", "they wait longer each time", "guard", enough=50)
def crash_loops(attacker):
    names = [f"crashes-{index}" for index in range(50)]
    for index, name in enumerate(names):
        attacker.operator(name, ("trap", "panic=gone", "exit=3", "recurse", "memory")[index % 5])
    yield noticed(attacker, *names)


@way("names", "names of 253 letters, arguments and environments of a megabyte", "they are shown, cut, or refused", "guard")
def long_names(attacker):
    name = ".".join(["n" * 62] * 4)[:253]
    attacker.operator(name, "print=long")
    attacker.operator("arguments", *(["x" * 1000] * 900))
    attacker.operator("environment", "wait", env=[{"name": f"N{index}" + "n" * 1000, "value": "v" * 3000} for index in range(250)])
    attacker.operator("files", "wait", files=[{"path": "/" + "/".join(["p" * 250] * 8) + str(index), "configMap": {"name": "missing", "optional": True}} for index in range(250)])
    attacker.operator("modules", module={"url": "https://example.invalid/" + "m" * 30_000})
    yield noticed(attacker, name, "arguments", "environment", "files")


@way("name resolution", "modules behind names whose server does not answer, given up as soon as it was asked",
     "the loop does not wait for names: the Lease is renewed", "seen", enough=5)
def silent_name_server(attacker):
    numbers = itertools.count()

    def ask_and_give_up():
        number, asked = next(numbers), attacker.stage.name_server.questions
        names = [f"asks-{number}-{index}" for index in range(4)]
        for name in names:
            attacker.operator(name, module={"url": f"http://{name}.example.com/module.wasm"})
            attacker.workflow(name, module={"url": f"https://{name}.example.com/module.wasm"})
        eventually(lambda: attacker.stage.name_server.questions >= asked + len(names), "the name server is asked", 60)
        for name in names:
            attacker.cluster.delete(*operators.OPERATOR, name, attacker.namespace)
            attacker.cluster.delete(*workflows.WORKFLOW, name, attacker.namespace)
    yield attacker.meanwhile(ask_and_give_up)


# Workflows and instances ---------------------------------------------------------------------------------------


def answer(loops=1, **members):
    return assembled(hostile.prints(json.dumps(members), loops))


@way("steps of machines", "twenty workflows that step for ever", "steps are fair, and the ledger is written now and then only", "guard", enough=200)
def workflows_without_end(attacker):
    timers = [{"id": f"again-{index}", "delay": 0, "event": {"type": "AGAIN"}} for index in range(3)]
    attacker.module("endless", answer(newState={"value": "endless"}, timersStarted=timers))
    for index in range(20):
        attacker.workflow(f"steps-{index}", "endless")
    yield lambda: sum(attacker.workflow_status(f"steps-{index}").get("transitions", 0) for index in range(20))


@way("reconciles of workflows", "sixty workflows that step for ever, and burn most of each step's time", "a namespace holds half of the reconciles at most",
     "guard", enough=5)
def workflows_that_burn(attacker):
    timers = [{"id": "again", "delay": 0, "event": {"type": "AGAIN"}}]
    attacker.module("burning", answer(loops=30_000_000, newState={"value": "burning"}, timersStarted=timers))
    for index in range(60):
        attacker.workflow(f"burns-{index}", "burning")
    yield lambda: sum(bool(attacker.workflow_status(f"burns-{index}")) for index in range(60))


@way("answers of machines", "machines that never answer, trap, or answer with four gigabytes", "the workflow is stalled", "guard")
def machines_that_do_not_answer(attacker):
    names = ("machine_loops", "machine_endless", "machine_huge", "machine_traps")
    for name in names:
        attacker.module(name.replace("_", "-"), wat(name))
        for index in range(5):
            attacker.workflow(f"{name.replace('_', '-')}-{index}", name.replace("_", "-"))
    yield lambda: sum(bool(attacker.workflow_status(f"{name.replace('_', '-')}-0")) for name in names)


@way("actions of workflows", "asks for ten thousand Jobs at once", "the ledger's bound refuses it, nothing is made", "guard")
def ten_thousand_jobs(attacker):
    jobs = [{"type": "RUN_JOB", "params": {"image": "x", "name": f"job-{index}"}} for index in range(10_000)]
    attacker.module("jobs", answer(newState="jobs", actions=jobs))
    for index in range(3):
        attacker.workflow(f"jobs-{index}", "jobs")
    yield lambda: sum(bool(attacker.workflow_status(f"jobs-{index}")) for index in range(3))
    assert stalled(attacker, "jobs-0", workflows.WORKFLOW)
    assert attacker.cluster.list("batch/v1", "Job", attacker.namespace) == []


@way("lookups of kinds", "a hundred workflows wait for objects of twelve thousand API groups that do not exist",
     "lookups are fair by namespace, and names of missing groups displace no group that exists", "guard", enough=90)
def waits_for_missing_groups(attacker):
    attacker.machine("conductor", workflows.bundle(workflows.CONDUCTOR))
    names = [f"waits-{index}" for index in range(100)]
    for name in names:
        waits = [{"type": "WAIT_FOR", "params": {"apiVersion": f"{name}-{number}.example.com/v1", "kind": "Nothing", "name": "none"}} for number in range(120)]
        attacker.workflow(name, "conductor", input={"rounds": [waits]})
    yield lambda: sum(bool(attacker.workflow_status(name).get("outbox")) for name in names)


@way("expressions", "waits with JSONPaths that nest, recurse and filter", "they are refused, or evaluated in bounded time", "guard", enough=50)
def json_paths(attacker):
    paths = ["{" + "..*" * 200 + "}", "{" + "[*]" * 2000 + "}", "{.data" + "[?(@.a==1)]" * 500 + "}", "{" * 5000, "{.data['" + "x" * 30_000 + "']}",
             "{" + "..data" * 1000 + "}", "{.data.a[0:99999999999999999999]}", "{range " * 500 + "}"]
    attacker.config_map("target", **{f"k{index}": "v" * 10 for index in range(2000)})
    waits = [{"type": "WAIT_FOR", "params": {"apiVersion": "v1", "kind": "ConfigMap", "name": "target", "jsonPath": path}} for path in paths]
    attacker.module("paths", answer(newState="waiting", actions=waits))
    attacker.workflow("paths", "paths")
    numbers = itertools.count()
    change = attacker.meanwhile(lambda: attacker.cluster.patch("v1", "ConfigMap", "target", {"data": {"k0": str(next(numbers))}}, attacker.namespace))
    yield lambda: change() if attacker.workflow_status("paths") else 0


@way("events of workflows", "signals and changes as fast as the API server takes them", "the inbox has a bound; what is beyond waits as annotations", "guard", enough=10)
def signal_flood(attacker):
    attacker.machine("responder", workflows.bundle("responder"))
    attacker.workflow("floods", "responder", input={"answer": "flooded"})
    numbers = itertools.count(1)

    def flood():
        many = {f"signal.workflows.example.com/s{number}": json.dumps({"type": "ASK", "number": number}) for number in itertools.islice(numbers, 200)}
        attacker.cluster.patch(*workflows.WORKFLOW, "floods", {"metadata": {"annotations": many}}, attacker.namespace)
    yield attacker.meanwhile(flood)


@way("documents", "specs that nest deeper than any document that the host reads, numbers beyond all types, text that is no text",
     "parsers refuse them; nothing ends the host", "guard")
def documents_that_break_parsers(attacker):
    def nested(depth):
        return json.loads("[" * depth + "]" * depth)
    hostile_inputs = [{"input": {"deep": nested(400)}}, {"input": {"number": 1e308, "small": 5e-324, "large": 2 ** 63 - 1}},
                      {"input": {"text": "\u0000\ud7ff\uffff\u202e" * 1000}}, {"timeouts": {"workflow": "9" * 300 + "h"}},
                      {"timeouts": {"states": {"x" * 5000: "-1h"}}}, {"historyLimit": 2147483647}, {"input": {str(index): index for index in range(20_000)}}]
    attacker.machine("responder", workflows.bundle("responder"))
    made = 0
    for index, spec in enumerate(hostile_inputs):
        try:
            attacker.workflow(f"breaks-{index}", "responder", **spec)
            made += 1
        except ApiError as error:
            assert error.status in (400, 422)
    nobody = {"ownerReferences": [{"apiVersion": "x.example.com/v1", "kind": "Nobody", "name": "nobody", "uid": "\"\\<"}]}
    for kind in ({"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Secret"},
                 {"apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "spec": {"wasmUrl": "https://nowhere.example.com/x.wasm"}}):
        try:
            attacker.cluster.create(kind | {"metadata": {"name": "of-nobody", "namespace": attacker.namespace} | nobody})
        except ApiError as error:
            assert error.status in (400, 403, 422)
    # A review that is nested deeper is not read, and the API server answers with 500.
    for index in range(50):
        try:
            attacker.cluster.create({"apiVersion": "tenants.hangar.dev/v1", "kind": "Greeting", "metadata": {"name": f"breaks-{index}", "namespace": attacker.namespace},
                                     "spec": {"text": "x" * 1000 * index, "from": "\u0000", "deep": nested(100)}})
        except ApiError as error:
            assert error.status in (400, 403, 422)
    yield lambda: made


@way("the server of records", "asks for its own records on many connections without end, and for the victim's",
     "questions are bounded for each user and read by threads that give way; of others nothing is told", "guard", enough=30)
def asks_for_records(attacker):
    port = attacker.stage.records_port
    attacker.operator("asked", "tick=10")
    token = attacker.cluster.kubectl("create", "token", "default", "--namespace", attacker.namespace).strip()
    told, statuses = [], collections.Counter()

    def ask(path, question):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=60)
        try:
            connection.request("POST", path, json.dumps(question), {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            statuses[answer.status] += 1
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def flood():
        ask("/v1/turns", {"namespace": attacker.namespace, "name": "asked", "turns": 1000, "slowest": True})
        ask("/v1/writes", {"resource": "configmaps", "kind": "ConfigMap", "namespace": attacker.namespace, "name": "none", "writes": 1000})
        ask("/v1/top", {"seconds": 3600})

    def pry():
        for path, question in (("/v1/turns", {"namespace": "victim", "name": "answers"}), ("/v1/top", {"namespace": "victim"}),
                               ("/v1/writes", {"resource": "configmaps", "kind": "ConfigMap", "namespace": "victim", "name": "question"})):
            status, text = ask(path, question)
            if status not in (403, 429, 503):
                told.append((status, text[:300]))
        status, text = ask("/v1/top", {})
        if status == 200 and any(one["namespace"] != attacker.namespace for one in json.loads(text)["guests"]):
            told.append((status, text[:300]))
    # The first before the flood, whose own questions leave no room for others of this user.
    pry()
    assert statuses[403] > 0, f"nobody was asked for the victim's: {statuses}"
    for act in [flood] * 8 + [pry]:
        attacker.meanwhile(act)
    yield lambda: statuses[200] + statuses[429]
    eventually(lambda: statuses[429] > 0, "one user has asked too much", 120)
    assert not told, f"the attacker is told: {told[0]}"


@way("the webhooks", "shakes hands without end on many connections, and sends large reviews and conversions as nobody in particular",
     "reviews of others are refused unread; handshakes and bodies cost only the thread of the webhooks", "guard", enough=200)
def floods_the_webhooks(attacker):
    port = attacker.stage.webhook_port
    # As a pod has an address of its own.
    own = ("127.0.0.2", 0)
    context = ssl._create_unverified_context()
    statuses = collections.Counter()
    large = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "object": {"metadata": {"name": "x"}, "spec": {"text": "x" * (6 << 20)}}}})
    deep = json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "u", "desiredAPIVersion": "tenants.hangar.dev/v1", "objects": [{"numbers": [1] * (1 << 20)}]}})

    def send(path, body):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30, source_address=own)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            statuses[path.split("/")[1], connection.getresponse().status] += 1
        finally:
            connection.close()

    def shake_hands():
        # A new context resumes no session.
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=30, source_address=own)
        try:
            connection.connect()
            statuses["hands"] += 1
        finally:
            connection.close()
    for act in [shake_hands] * 8:
        attacker.meanwhile(act)
    for _ in range(2):
        attacker.meanwhile(lambda: send("/validations/greetings.tenants.hangar.dev", large))
        attacker.meanwhile(lambda: send("/crdconvert/greetings.tenants.hangar.dev", deep))
    yield lambda: statuses["hands"]
    eventually(lambda: statuses["validations", 401] > 0, "somebody without a certificate is refused", 120)
    assert statuses["validations", 200] == 0, f"somebody without a certificate was answered: {statuses}"


@way("instances of Airways", "hundreds of instances that change all the time", "evaluations are fair by namespace", "guard", enough=200)
def instance_flood(attacker):
    for index in range(100):
        attacker.cluster.create({"apiVersion": "tenants.hangar.dev/v1", "kind": "Greeting", "metadata": {"name": f"floods-{index}", "namespace": attacker.namespace},
                                 "spec": {"text": "0"}})
    numbers = itertools.count(1)

    def change():
        number = next(numbers)
        attacker.cluster.patch("tenants.hangar.dev/v1", "Greeting", f"floods-{number % 100}", {"spec": {"text": str(number)}}, attacker.namespace)
    yield attacker.meanwhile(change)
