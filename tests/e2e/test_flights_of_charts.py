"""`hangar flight from-chart`: a chart becomes a flight that prints the same as helm template."""
import os
import pathlib
import subprocess

import pytest
import yaml

from charts import ROOT, Refused, helm
from host import BINARY

SHOP = ROOT / "sdk/go/helm/testdata/shop"
KUBERNETES = "v1.36.0"

# The flight has 80 MB, so only one process, the one with this group, builds it.
pytestmark = pytest.mark.xdist_group("flight_of_a_chart")


def from_chart(chart, out, *flags, env=None):
    return subprocess.run([str(BINARY), "flight", "from-chart", str(chart), f"--out={out}", *flags], capture_output=True, text=True,
                          timeout=600, env={**os.environ, **(env or {})})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    out = tmp_path_factory.mktemp("charts") / "shop"
    # The environment of a shell in which flights are built.
    made = from_chart(SHOP, out, f"--kube-version={KUBERNETES}", "--include-crds", env={"GOOS": "wasip1", "GOARCH": "wasm"})
    assert made.returncode == 0, made.stderr
    assert "go build" in made.stdout and str(out) in made.stdout
    return out


@pytest.fixture(scope="module")
def module(source):
    """Built without a network: the flight brings its SDK, and its go.mod is complete."""
    environment = {**os.environ, "GOOS": "wasip1", "GOARCH": "wasm", "GOFLAGS": "-mod=readonly", "GOPROXY": "off", "GOWORK": "off"}
    built = subprocess.run(["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "flight.wasm", "."], cwd=source, env=environment,
                           capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    vetted = subprocess.run(["go", "vet", "."], cwd=source, env=environment, capture_output=True, text=True, timeout=600)
    assert vetted.returncode == 0, vetted.stderr
    return source / "flight.wasm"


@pytest.fixture(scope="module")
def run(module, tmp_path_factory):
    cache = tmp_path_factory.mktemp("modules")

    def run(values):
        return subprocess.run(
            [str(BINARY), "run-flight", str(module), "--release=corner", "--release-namespace=prod", f"--module-cache-dir={cache}",
             "--log-level=error", "--timeout=1m"], input=values, capture_output=True, text=True, timeout=1800)
    return run


def in_order(resources):
    return sorted((one for one in resources if one), key=lambda one: (one["kind"], one["metadata"]["name"]))


def template(values):
    return in_order(yaml.safe_load_all(helm(
        "template", "corner", str(SHOP), "--namespace=prod", f"--kube-version={KUBERNETES}", "--include-crds", "--skip-tests", "--values=-",
        stdin=values)))


VALUES = {
    "none": "",
    "typed": "replicas: 0\nimage: {tag: '8', pullPolicy: Always}\nargs: []\nports: [{name: admin, port: 81, protocol: UDP}]\nmetrics: {enabled: true}\n",
    "what no type has": "undeclared: 1000000\nimage: {other: [1, {a: null}]}\nports: [{name: admin, port: 81, other: true}]\nsettings: {depth: {a: b}}\n",
    "null for what the chart has": "nodeSelector: null\nsettings: {color: null}\nargs: null\ncache: {persistent: null}\n",
    "another type than the example has": "budget: half\nargs: [1, true, 0.5]\ncache: {shards: many, persistent: false}\n",
    "templates in values": "greeting: '{{ .Values.settings.color }} in {{ .Release.Namespace }}'\nglobal: {color: red}\n",
    "JSON": '{"replicas": 12, "cache": {"size": "1Gi"}, "tolerations": [{"operator": "Exists"}], "nodeSelector": {"a": "b"}}',
}


@pytest.mark.parametrize("values", VALUES)
def test_a_flight_prints_what_helm_template_prints(run, values):
    done = run(VALUES[values])

    assert done.returncode == 0, done.stderr
    printed = [one for stage in yaml.safe_load_all(done.stdout) for one in (stage if isinstance(stage, list) else [stage])]
    assert in_order(printed) == template(VALUES[values])


def test_what_the_chart_refuses_the_flight_refuses(run):
    values = "replicas: many\n"
    with pytest.raises(Refused, match="replicas"):
        template(values)

    done = run(values)

    assert done.returncode == 1 and "replicas" in done.stderr and not done.stdout


def test_the_values_of_a_chart_have_types(source):
    types = (source / "values.go").read_text()

    for field in ("Replicas *int64", "Image *ValuesImage", "Args []string", "Cache *ValuesCache", "Persistent *bool"):
        assert field in types


def test_an_archive_makes_the_flight_that_its_directory_makes(source, tmp_path):
    helm("package", str(SHOP), f"--destination={tmp_path}")
    out = tmp_path / "flight"

    made = from_chart(tmp_path / "shop-1.2.3.tgz", out, f"--kube-version={KUBERNETES}", "--include-crds")

    assert made.returncode == 0, made.stderr
    for name in ("main.go", "values.go", "go.mod", "go.sum", "chart/templates/deployment.yaml", "chart/charts/cache/values.yaml", "sdk/helm/helm.go"):
        assert (out / name).read_bytes() == (source / name).read_bytes(), name


@pytest.mark.parametrize("chart, flags, env, words", [
    ("no/such/chart", [], {}, "no/such/chart does not exist: CHART is a chart's directory or .tgz"),
    (str(SHOP / "templates"), [], {}, "Chart.yaml"),
    (str(SHOP), ["--kube-version=newest"], {}, '"newest" is not a version of Kubernetes such as v1.36.0'),
    (str(SHOP), ["--module=a b"], {}, "--module"),
    (str(SHOP), [], {"PATH": "/nowhere"}, "go not found on PATH"),
])
def test_what_is_wrong_is_said(chart, flags, env, words, tmp_path):
    out = tmp_path / "flight"

    done = from_chart(chart, out, *flags, env=env)

    assert done.returncode == 1 and words in done.stderr
    assert not out.exists()


def test_nothing_is_overwritten(tmp_path):
    mine = pathlib.Path(tmp_path / "main.go")
    mine.write_text("mine")

    done = from_chart(SHOP, tmp_path)

    assert done.returncode == 1 and f"{tmp_path} is not empty" in done.stderr
    assert mine.read_text() == "mine" and list(tmp_path.iterdir()) == [mine]
