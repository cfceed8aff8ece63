// A recorder's file, as bytes: docs/formats/recorder.md.
//
// A file is a header and blocks. Each block stands alone: it has a checksum, its own time and its
// own table of texts, so that a file is readable up to where it was cut, and nothing has to be
// remembered between two blocks.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/internal/fields.h"
#include "recorder/record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::recorder {

inline constexpr std::uint32_t kFormatVersion = 2;

struct FileHeader {
  std::uint32_t version = kFormatVersion;
  std::uint64_t host = 0;  // One number of each process that records: instants are comparable.
  std::uint64_t sequence = 0;

  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};
inline constexpr std::size_t kFileHeaderBytes = 32;
[[nodiscard]] std::string encode(const FileHeader& header);

// Records in memory until they are a block.
class Block {
 public:
  // Both clocks, of one moment.
  struct Moment {
    Instant instant;
    WallTime wall;
  };

  [[nodiscard]] bool is_empty() const { return records_ == 0; }
  [[nodiscard]] std::size_t size_bytes() const { return payload_.size(); }
  [[nodiscard]] std::uint64_t record_count() const { return records_; }
  // The first one's `now` is the block's.
  void add(const Turn& record, const Moment& now);
  void add(const Asked& record, const Moment& now);
  void add(const Answered& record, const Moment& now);
  void add(const Slept& record, const Moment& now);
  void add(const Lost& record, const Moment& now);
  // All of it, as it is written. Empty afterwards, and without memory.
  [[nodiscard]] std::string take();

 private:
  template <class Kind>
  void put(const Kind& record, const Moment& now);

  Moment began_;
  std::string payload_;
  std::string scratch_;
  std::uint64_t records_ = 0;
  internal::KnownTexts texts_;
};

// A block with this payload, as if it had been recorded: for whoever tests reading.
[[nodiscard]] std::string wrap(std::string_view payload);

// Where a record stands.
struct Place {
  std::uint64_t host = 0;
  Block::Moment block;

  // By the clock that people read, as it was then.
  [[nodiscard]] WallTime wall(Instant instant) const {
    return block.wall + std::chrono::duration_cast<WallTime::duration>(instant - block.instant);
  }
};

// What was read of a file. All of it is what the host had written, or is left out.
struct ReadFile {
  FileHeader header;
  std::uint64_t blocks = 0;
  std::uint64_t records = 0;
  // Why there is less than the file has bytes: it was cut, or is damaged. Empty: it was read whole.
  std::string cut;
};
// Views of a record are into `bytes`. False: nothing more is wanted. InvalidInput when it is not a
// recorder's file, or of another version.
using OnRecord = std::function<bool(const Place& place, const Record& record)>;
[[nodiscard]] Result<ReadFile> read(std::string_view bytes, const OnRecord& on_record);
// The same, the last record first.
[[nodiscard]] Result<ReadFile> read_backwards(std::string_view bytes, const OnRecord& on_record);

}  // namespace hangar::recorder
