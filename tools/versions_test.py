"""The versions of Kubernetes that README.md says are supported: the control plane's, and the two minor versions before
it, on which tests/versions runs the conformance tests."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "dev/tools"


def minor_of(module):
    (minor,) = re.findall(r"^\s*(?:require )?k8s\.io/kubernetes v1\.(\d+)\.\d+", (TOOLS / module / "go.mod").read_text(), re.MULTILINE)
    return int(minor)


def test_there_are_modules_for_the_two_minor_versions_before_that_of_the_control_plane():
    newest = minor_of("ctl")
    modules = {path.name for path in TOOLS.glob("kubernetes-1.*")}
    assert modules == {f"kubernetes-1.{newest - 1}", f"kubernetes-1.{newest - 2}"}
    assert all(f"kubernetes-1.{minor_of(module)}" == module for module in modules)


def test_the_readme_names_them():
    newest = minor_of("ctl")
    assert f"hangar supports Kubernetes 1.{newest - 2} to 1.{newest}." in (ROOT / "README.md").read_text()
