#include "node_fetch/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace hangar::node_fetch {
namespace {

class UnpackOne : public testing::Test {
 protected:
  UnpackOne() {
    std::string path = (std::filesystem::temp_directory_path() / "node-fetch-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
  }
  ~UnpackOne() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void pack(const std::vector<std::pair<std::string, std::string>>& files) const {
    archive* writer = ::archive_write_new();
    ::archive_write_add_filter_gzip(writer);
    ::archive_write_set_format_pax_restricted(writer);
    ::archive_write_open_filename(writer, path("a.tar.gz").c_str());
    for (const auto& [name, bytes] : files) {
      archive_entry* entry = ::archive_entry_new();
      ::archive_entry_set_pathname(entry, name.c_str());
      if (bytes.starts_with("-> ")) {
        ::archive_entry_set_filetype(entry, AE_IFLNK);
        ::archive_entry_set_symlink(entry, bytes.substr(3).c_str());
      } else {
        ::archive_entry_set_filetype(entry, AE_IFREG);
        ::archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
      }
      ::archive_entry_set_perm(entry, 06755);
      ::archive_write_header(writer, entry);
      ::archive_write_data(writer, bytes.data(), bytes.size());
      ::archive_entry_free(entry);
    }
    ::archive_write_free(writer);
  }

  std::filesystem::path directory_;
};

TEST_F(UnpackOne, TakesTheOneProgramAndNothingElse) {
  pack({{"../../escape", "no"}, {"dist/crun", "the program"}, {"README.md", "no"}});

  const auto unpacked = unpack_one(path("a.tar.gz"), "crun", path("out"));

  ASSERT_TRUE(unpacked) << unpacked.error().message();
  std::ifstream out(path("out"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(out), {}), "the program");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 2);
  EXPECT_EQ(std::filesystem::status(path("out")).permissions() & std::filesystem::perms::set_uid,
            std::filesystem::perms::none);
}

TEST_F(UnpackOne, RefusesArchivesWithoutOrWithTwo) {
  pack({{"README.md", ""}});
  EXPECT_FALSE(unpack_one(path("a.tar.gz"), "crun", path("out")));
  pack({{"a/crun", "1"}, {"b/crun", "2"}});
  EXPECT_FALSE(unpack_one(path("a.tar.gz"), "crun", path("out")));
}

TEST_F(UnpackOne, DoesNotFollowLinks) {
  pack({{"crun", "-> /etc/passwd"}});

  EXPECT_FALSE(unpack_one(path("a.tar.gz"), "crun", path("out")));
}

TEST_F(UnpackOne, RefusesWhatIsNoArchive) {
  std::ofstream(path("a.tar.gz")) << "<html>not found</html>";

  EXPECT_FALSE(unpack_one(path("a.tar.gz"), "crun", path("out")));
}

}  // namespace
}  // namespace hangar::node_fetch
