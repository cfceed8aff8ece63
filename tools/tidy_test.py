"""tidy.py: that it finds violations of the layers. The CTest unit.tidy checks the tree itself."""
import pytest

import tidy

CMAKE = "hangar_library(base)\nhangar_library(io DEPS base)\nhangar_library(abi/flight DEPS base io SYSTEM fmt::fmt)\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Writes files below src/ of a tree with the layers above, and returns the findings."""
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    monkeypatch.setattr(tidy, "ROOT", tmp_path)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / "src" / name.replace("__", "/").replace("_cc", ".cc").replace("_h", ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(tidy.findings(tidy.layers()))
    return write


def test_an_include_downwards_is_in_order(tree):
    assert tree(io__a_cc='#include "base/b.h"\n#include "io/a.h"\n', abi__flight__a_cc='#include "io/a.h"\n') == []


def test_an_include_upwards_is_found(tree):
    assert tree(io__a_cc='#include "abi/flight/a.h"\n') == ["src/io/a.cc:1: io may not include abi/flight"]
    assert tree(base__a_cc='\n#include "io/a.h"\n')[0] == "src/base/a.cc:2: base may not include io"


def test_what_is_private_to_a_folder_is_included_there_only(tree):
    assert tree(io__a_cc='#include "io/internal/a.h"\n') == []
    assert tree(abi__flight__a_cc='#include "io/internal/a.h"\n') == ["src/abi/flight/a.cc:1: io/internal/a.h is private to io"]


def test_each_library_has_its_door(tree):
    assert tree(io__a_cc="#include <boost/asio/post.hpp>\n") == []
    assert tree(base__a_cc="#include <boost/asio/post.hpp>\n") == ["src/base/a.cc:1: only http, io may include boost/asio"]


def test_the_document_names_the_doors_of_each_library(monkeypatch):
    monkeypatch.setattr(tidy, "DOORS", {"boost/asio": {"io", "http"}, "boost/beast": {"http"}, "openssl": {"base"}, "sys/random.h": {"base"}})
    monkeypatch.setattr(tidy, "ROWS", {"boost/asio": "Boost", "boost/beast": "Boost", "openssl": "OpenSSL"})
    boost = "| Boost | 1.81 | the loop | `io/`, `http/` (Beast: `http/` only) |\n"

    assert list(tidy.document_findings(boost + "| OpenSSL | 3.0 | TLS | `base/` |\n")) == []
    assert list(tidy.document_findings(boost + "| OpenSSL | 3.0 | TLS | `base/`, `io/` |\n")) == [
        "docs/dependencies.md: OpenSSL is included by base, not by base, io"]
    assert list(tidy.document_findings(boost)) == ["docs/dependencies.md: no row begins with OpenSSL"]


def test_every_library_has_a_row():
    assert set(tidy.DOORS) - set(tidy.ROWS) == {"sys/random.h"}


def test_random_bytes_have_one_door(tree):
    assert tree(base__a_cc="#include <sys/random.h>\n") == []
    assert tree(io__a_cc="#include <sys/random.h>\n") == ["src/io/a.cc:1: only base may include sys/random.h"]


def test_clocks_have_one_door(tree):
    reading = "  ::clock_gettime(CLOCK_BOOTTIME, &time);\n"
    assert tree(io__clock_cc=reading, io__a_cc="// No std::chrono::steady_clock::now() here.\n", io__a_test_cc=reading) == []
    found = "src/io/a.cc:1: reads a clock or random numbers that a simulation cannot repeat: see io/clock.h"
    for line in (reading, "auto now = std::chrono::system_clock::now();\n", "Engine engine{std::random_device()()};\n"):
        assert tree(io__a_cc=line) == [found]


def test_the_lowest_folder_bounds_nothing_of_guests(tree):
    head = "// Bounds.\n#pragma once\n"
    assert tree(base__limits_h=head + "constexpr int kObjectBytesMax = 1;\n",
                io__limits_h=head + "constexpr int kGuestRequestsMax = 1;\n") == []
    assert tree(base__limits_h=head + "constexpr int kGuestRequestsMax = 1;\n") == [
        "src/base/limits.h:3: kGuestRequestsMax belongs into the limits.h of the folder that keeps it"]


def test_a_header_says_what_it_is_for_and_is_included_once(tree):
    assert tree(io__a_h="// What it is for.\n#pragma once\n") == []
    assert tree(io__a_h="int a();\n") == ["src/io/a.h:1: a header starts with what it is for", "src/io/a.h:1: missing #pragma once"]


def test_the_list_of_layers_is_in_order(tree, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("hangar_library(io DEPS base)\nhangar_library(base)\n")

    assert "CMakeLists.txt: io is listed before base, which it may include" in tidy.structure_findings(tidy.layers())


def test_what_only_the_tests_of_a_folder_need_is_not_a_layer(tree, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("hangar_library(base)\nhangar_library(io DEPS base TEST_DEPS abi/flight)\n")

    assert tidy.layers() == {"base": {"base"}, "io": {"base", "io"}}


def test_a_folder_says_what_it_is(tree, tmp_path):
    tree(base__a_cc="", io__a_cc="", abi__flight__a_cc="", compile__main_cc="")
    for folder in ("base", "abi/flight"):
        (tmp_path / "src" / folder / "README.md").write_text("# what it is")

    assert list(tidy.structure_findings(tidy.layers())) == [
        "src/compile: has no README.md that says what it is", "src/io: has no README.md that says what it is"]


def test_the_overview_of_src_lists_each_folder(tree, tmp_path):
    tree(base__a_cc="", io__a_cc="", abi__flight__a_cc="")
    for folder in ("base", "io", "abi/flight"):
        (tmp_path / "src" / folder / "README.md").write_text("# what it is")
    (tmp_path / "src" / "README.md").write_text("| ground floor | `base/` |\n| contracts | `abi/` |\n")

    assert list(tidy.structure_findings(tidy.layers())) == ["src/README.md: does not list io"]


def test_what_no_sanitized_build_tests_is_among_the_walls(tree, tmp_path):
    tree(io__a_test_cc="""TEST(Anywhere, Runs) {}
#if !__has_feature(thread_sanitizer)
TEST(Threads, RunInAnother) {}
#if !__has_feature(address_sanitizer)
TEST_F(Walls, Hold) {}
#endif
#endif
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
TEST(Sanitized, Only) {}
#else
TEST(Else, IsNotLookedAt) {}
#endif
""")
    assert list(tidy.wall_findings()) == ["src/io/a_test.cc:5: no sanitized build has Walls.Hold: list it with hangar_walls()"]
    (tmp_path / "CMakeLists.txt").write_text(CMAKE + 'hangar_walls(io "Other.*:Walls.*")\n')
    assert list(tidy.wall_findings()) == []
