#include "recorder/recorder.h"

#include "base/consumer.h"
#include "base/random.h"
#include "recorder/limits.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hangar::recorder {

namespace {

// Part of limits::kShutdownMax, the time for the whole shutdown.
constexpr std::chrono::seconds kFlushMax{2};

// Records are written in their order; may_wait() shares the memory for waiting records.
Consumer thread_user() {
  return Consumer::of_host("records");
}

}  // namespace

Recorder::Recorder(io::Loop& loop, Options options, Metrics& metrics, Log log)
    : loop_(loop),
      log_(std::move(log)),
      retry_after_(options.retry_after),
      records_(metrics.counter("hangar_recorder_records_total", "Records of turns and requests.")),
      lost_(metrics.counter("hangar_recorder_lost_total",
                            "Records that the disk did not take, or not in time.")),
      given_up_(metrics.counter("hangar_recorder_given_up_total",
                                "Older records that namespaces with the most of them gave up to "
                                "make room.")),
      files_bytes_(metrics.gauge("hangar_recorder_bytes", "What the recorder's files take.")),
      is_stopped_(metrics.gauge("hangar_recorder_stopped",
                                "1 while records are lost because they cannot be written.")),
      files_(
          std::make_unique<Files>(std::move(options.directory), options.limits, random_number())),
      thread_(loop, 1) {
  care();
}

Recorder::~Recorder() = default;

// A namespace may have no more waiting bytes than it leaves free, so that the records of others
// find room when one namespace produces more than the disk can take.
bool Recorder::may_wait(std::string_view namespace_) const {
  return waiting_bytes_ <= kWaitingBytesMax &&
         held_by(waiting_, namespace_) <= kWaitingBytesMax - waiting_bytes_;
}

// The other half is for the records of the namespace, which are worth more.
bool Recorder::may_wait_with_body(std::string_view namespace_) const {
  return waiting_bytes_ <= kWaitingBytesMax &&
         held_by(waiting_, namespace_) <= (kWaitingBytesMax - waiting_bytes_) / 2;
}

template <class Kind>
bool Recorder::put(const Kind& record) {
  const Instant now = io::Loop::now();
  if (stopped_at_ && now - *stopped_at_ < retry_after_) {
    lose(1, now);
    return false;
  }
  if (!may_wait(record.guest.namespace_)) {
    if (missing_.count == 0) log_.warning("turns are not recorded: the disk does not keep up");
    lose(1, now);
    return false;
  }
  records_.add();
  if (block_.is_empty()) {
    const Block::Moment moment{.instant = now, .wall = io::Loop::wall_now()};
    if (missing_.count > 0 && !told_) {
      told_ = missing_;
      block_tells_ = true;
      block_.add(missing_, moment);
    }
    block_began_ = now;
    block_.add(record, moment);
    write_timer_ = loop_.after(kWriteAfter, [this] { write(); });
    return true;
  }
  block_.add(record, {});
  return true;
}

template <class Kind>
void Recorder::put_alone(const Kind& record) {
  if (put(record)) write_if_full();
}

void Recorder::write_if_full() {
  if (block_.size_bytes() + bodies_bytes_ >= kBlockBytes) write();
}

void Recorder::record(const Turn& turn) {
  for (Observer* const observer : observers_)
    observer->on_turn(turn);
  put_alone(turn);
}
void Recorder::record(const Asked& asked) {
  for (Observer* const observer : observers_)
    observer->on_asked(asked);
  put_alone(asked);
}
void Recorder::record(const Asked& asked, const BodyOfRequest& body) {
  for (Observer* const observer : observers_)
    observer->on_asked(asked);
  if (!put(asked)) return;
  records_.add();
  RawBody raw{.contract = asked.guest.contract,
              .namespace_ = std::string(asked.guest.namespace_),
              .name = std::string(asked.guest.name),
              .instance = asked.guest.instance,
              .id = asked.id,
              .at = asked.at,
              .secrets = body.secrets};
  if (body.bytes.size() > kBodyReadBytesMax) {
    raw.state = BodyState::TooLarge;
  } else if (!may_wait_with_body(asked.guest.namespace_)) {
    raw.state = BodyState::NoRoom;
  } else {
    raw.bytes = body.bytes;
  }
  bodies_bytes_ += raw.size_bytes();
  bodies_.push_back(std::move(raw));
  write_if_full();
}
void Recorder::record(const Answered& answered) {
  for (Observer* const observer : observers_)
    observer->on_answered(answered);
  put_alone(answered);
}
void Recorder::record(const Slept& slept) {
  put_alone(slept);
}

void Recorder::write() {
  write_timer_.cancel();
  if (block_.is_empty()) return;
  Written written{.bytes = block_.size_bytes() + std::exchange(bodies_bytes_, 0),
                  .records = block_.record_count() + bodies_.size() - (block_tells_ ? 1 : 0),
                  .first = block_began_,
                  .tells = std::exchange(block_tells_, false),
                  .held = block_.held()};
  for (const RawBody& body : bodies_)
    recorder::add(written.held, body.namespace_, body.size_bytes());
  waiting_bytes_ += written.bytes;
  recorder::add(waiting_, written.held);
  thread_.submit(
      thread_user(), [this, block = std::exchange(block_, Block()),
                      bodies = std::exchange(bodies_, {}), written = std::move(written)]() mutable {
        const std::uint64_t before = files_->given_up();
        written.result =
            files_->append(std::move(block), bodies, io::Loop::now(), io::Loop::wall_now());
        written.files_bytes = files_->bytes();
        written.given_up = files_->given_up() - before;
        loop_.post([this, written = std::move(written)] { on_written(written); });
      });
}

void Recorder::on_written(const Written& written) {
  waiting_bytes_ -= written.bytes;
  subtract(waiting_, written.held);
  given_up_.add(static_cast<double>(written.given_up));
  files_bytes_.set(static_cast<double>(written.files_bytes));
  const std::optional<Lost> told =
      written.tells ? std::exchange(told_, std::nullopt) : std::nullopt;
  if (!written.result) {
    lose(written.records, written.first);
    if (!stopped_at_) {
      log_.warning("turns are not recorded", {{"error", written.result.error().message()}});
      is_stopped_.set(1);
    }
    stopped_at_ = io::Loop::now();
    return;
  }
  // A nearly full disk may take a small block now and then, which is not a recovery. Recording
  // resumes when a block is written that reports the lost records.
  if (!told) return;
  if (std::exchange(stopped_at_, std::nullopt)) is_stopped_.set(0);
  // More records may have been lost while the block waited; a later block reports those.
  missing_.count -= told->count;
  missing_.since = told->until;
  if (missing_.count > 0) return;
  log_.warning("turns are recorded again", {{"lost_records", told->count}});
  missing_ = Lost();
}

void Recorder::lose(std::uint64_t count, Instant since) {
  lost_.add(static_cast<double>(count));
  if (missing_.count == 0) missing_.since = since;
  missing_.count += count;
  missing_.since = std::min(missing_.since, since);
  missing_.until = io::Loop::now();
}

void Recorder::care() {
  thread_.submit(thread_user(), [this] {
    // The cause of an error also makes writes fail, and is logged there.
    (void)files_->sweep(io::Loop::now(), io::Loop::wall_now());
    loop_.post([this, bytes = files_->bytes()] { files_bytes_.set(static_cast<double>(bytes)); });
  });
  care_timer_ = loop_.after(kCarePeriod, [this] { care(); });
}

io::Task<void> Recorder::flush() {
  write();
  if (!co_await thread_.flush(thread_user(), kFlushMax)) {
    log_.warning("turns are not recorded: the disk does not keep up", {{"bytes", waiting_bytes_}});
  }
}

}  // namespace hangar::recorder
