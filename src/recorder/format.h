// Encodes and reads a recorder's file: docs/formats/recorder.md.
//
// A file is a header and blocks. Each block is independent of the others: it has its own checksum,
// time and table of texts. A truncated file is therefore readable up to the incomplete block, and a
// reader keeps no state between blocks.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "recorder/holdings.h"
#include "recorder/internal/fields.h"
#include "recorder/record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hangar::recorder {

inline constexpr std::uint32_t kFormatVersion = 4;
// Version 3 added GivenUp and `replaces`, version 4 Body; otherwise version 2 is the same.
inline constexpr std::uint32_t kFormatVersionOldest = 2;

struct FileHeader {
  std::uint32_t version = kFormatVersion;
  // The file also contains the records of this many files before it: ignore the files with the
  // sequences [sequence - replaces, sequence).
  std::uint32_t replaces = 0;
  std::uint64_t host = 0;  // Random number of the process. Instants of one host are comparable.
  std::uint64_t sequence = 0;

  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};
inline constexpr std::size_t kFileHeaderBytes = 32;
[[nodiscard]] std::string encode(const FileHeader& header);
// InvalidInput when the file is not a recorder's, or has another version.
[[nodiscard]] Result<FileHeader> read_header(std::string_view bytes);

// Collects records in memory and encodes them as a block.
class Block {
 public:
  // One moment by both clocks.
  struct Moment {
    Instant instant;
    WallTime wall;
  };

  [[nodiscard]] bool is_empty() const { return records_ == 0; }
  [[nodiscard]] std::size_t size_bytes() const;
  // What take() would return has this size.
  [[nodiscard]] std::size_t encoded_bytes() const;
  [[nodiscard]] std::uint64_t record_count() const { return records_; }
  // Bytes of its records, by the namespaces of their guests.
  [[nodiscard]] const Holdings& held() const { return held_; }
  // The `now` of the first record becomes the block's; that of the others is ignored.
  void add(const Turn& record, const Moment& now);
  void add(const Asked& record, const Moment& now);
  void add(const Answered& record, const Moment& now);
  void add(const Slept& record, const Moment& now);
  void add(const Lost& record, const Moment& now);
  void add(const GivenUp& record, const Moment& now);
  void add(const Body& record, const Moment& now);
  // Returns the encoded block. The object is empty afterwards and holds no memory.
  [[nodiscard]] std::string take();

 private:
  template <class Kind>
  void put(const Kind& record, const Moment& now);

  Moment began_;
  std::string bytes_;  // Room for the header, then the payload.
  std::string scratch_;
  std::uint64_t records_ = 0;
  internal::KnownTexts texts_;
  Holdings held_;
};

// A block with this payload and a valid checksum, for tests and fuzzers of the reader.
[[nodiscard]] std::string wrap(std::string_view payload);

// The host and the block of a record.
struct Place {
  std::uint64_t host = 0;
  Block::Moment block;
  std::uint64_t record_bytes = 0;  // Size of the record in the file.

  // The wall time of an instant, by the wall clock as it was set at the start of the block.
  [[nodiscard]] WallTime wall(Instant instant) const {
    return block.wall + std::chrono::duration_cast<WallTime::duration>(instant - block.instant);
  }
};

// The result of reading a file. Damaged parts are left out, never interpreted.
struct ReadFile {
  FileHeader header;
  std::uint64_t blocks = 0;
  std::uint64_t records = 0;
  // Why a part was left out: the file is truncated or damaged. Empty: all of it was read.
  std::string cut;
};
// Texts of a record are views into `bytes`. The callback returns false to stop. InvalidInput when
// the file is not a recorder's, or has another version.
using OnRecord = std::function<bool(const Place& place, const Record& record)>;
[[nodiscard]] Result<ReadFile> read(std::string_view bytes, const OnRecord& on_record);
// The same from the last record to the first.
[[nodiscard]] Result<ReadFile> read_backwards(std::string_view bytes, const OnRecord& on_record);

}  // namespace hangar::recorder
