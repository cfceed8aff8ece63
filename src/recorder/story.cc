#include "recorder/story.h"

#include "io/file.h"
#include "recorder/files.h"
#include "recorder/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>
#include <variant>

namespace hangar::recorder {

namespace {

ObjectVersion own(const Object& object) {
  return {.group = std::string(object.group),
          .kind = std::string(object.kind),
          .namespace_ = std::string(object.namespace_),
          .name = std::string(object.name),
          .version = object.version};
}

// The story without requests and suspend, which are separate records.
Story own(const Place& place, const Turn& turn) {
  Story story{.host = place.host,
              .contract = turn.guest.contract,
              .namespace_ = std::string(turn.guest.namespace_),
              .name = std::string(turn.guest.name),
              .instance = turn.guest.instance,
              .uid = std::string(turn.uid),
              .user = std::string(turn.user),
              .module = std::string(turn.module),
              .number = turn.number,
              .arrived = place.wall(turn.arrived),
              .ended = turn.ended,
              .waited = turn.began - turn.arrived,
              .ran = turn.ended - turn.began,
              .resume = turn.resume,
              .cpu = turn.cpu,
              .was_asleep = turn.was_asleep,
              .memory_bytes = turn.memory_bytes,
              .printed_bytes = turn.printed_bytes,
              .outcome = turn.outcome,
              .causes_left_out = turn.wakings_left_out};
  for (const Waking& waking : turn.wakings) {
    story.causes.push_back({.what = waking.cause,
                            .id = waking.id,
                            .bytes = waking.bytes,
                            .event = std::string(waking.event),
                            .object = own(waking.object)});
  }
  for (const Timer& timer : turn.timers)
    story.timers.push_back(timer.id);
  return story;
}

Request own(const Place& place, const Asked& asked) {
  return {.id = asked.id,
          .verb = asked.verb,
          .resource = std::string(asked.resource),
          .subresource = std::string(asked.subresource),
          .path = std::string(asked.path),
          .field_manager = std::string(asked.field_manager),
          .is_dry_run = asked.is_dry_run,
          .version_before = asked.version,
          .bytes = asked.bytes,
          .at = place.wall(asked.at),
          .object = {.group = std::string(asked.group),
                     .namespace_ = std::string(asked.namespace_),
                     .name = std::string(asked.name)}};
}

RecordedBody own(const Body& body) {
  RecordedBody owned{.state = body.state, .text = std::string(body.text)};
  for (const SecretName& secret : body.secrets)
    owned.secrets.emplace_back(secret.namespace_, secret.name);
  return owned;
}

// An object that the API server names gets its name from the answer. If the answer is of another
// group (the Scale of a Deployment is), its group and kind are not those of the requested resource.
void answer_with(Request& request, const ObjectVersion& answer) {
  if (request.resource.empty() || answer.group == request.object.group) {
    request.object = answer;
    return;
  }
  request.object.name = answer.name;
  request.object.version = answer.version;
}

void add(std::vector<Shortened>& shortened, const Place& place, const GivenUp& given_up) {
  const auto found =
      std::ranges::lower_bound(shortened, given_up.namespace_, {}, &Shortened::namespace_);
  const bool is_known = found != shortened.end() && found->namespace_ == given_up.namespace_;
  Shortened& one = is_known
                       ? *found
                       : *shortened.insert(found, {.namespace_ = std::string(given_up.namespace_)});
  one.records += given_up.count;
  one.until = std::max(one.until, place.wall(given_up.until));
}

// Whether a file that was read before also contains this file's records: a host was killed between
// the copy and the deletion.
bool is_replaced(const FileHeader& header, const std::vector<FileHeader>& newer) {
  return std::ranges::any_of(newer, [&header](const FileHeader& one) {
    return one.host == header.host && header.sequence < one.sequence &&
           one.sequence - header.sequence <= one.replaces;
  });
}

// `newer`: the headers of the files that were read before.
Result<bool> read_into(ReadDirectory& out, const std::filesystem::path& path,
                       std::vector<FileHeader>& newer, Storyteller& storyteller,
                       const std::function<bool(Story story)>& on_story) {
  const std::string bytes = HANGAR_TRY(io::read_file(path, kFileBytesReadMax));
  const Result<FileHeader> header = read_header(bytes);
  if (header && is_replaced(*header, newer)) return true;
  if (header) newer.push_back(*header);
  bool is_enough = false;
  Result<ReadFile> read = read_backwards(bytes, [&](const Place& place, const Record& record) {
    out.since = out.since ? std::min(*out.since, place.block.wall) : place.block.wall;
    if (const auto* const lost = std::get_if<Lost>(&record)) out.lost_records += lost->count;
    if (const auto* const less = std::get_if<GivenUp>(&record)) add(out.shortened, place, *less);
    if (std::optional<Story> story = storyteller.add(place, record)) {
      is_enough = !on_story(*std::move(story));
    }
    return !is_enough;
  });
  if (!read) return std::unexpected(std::move(read).error().in(path.string()));
  ++out.files;
  if (!read->cut.empty()) {
    out.problems.push_back(fmt::format("{}: {}", path.filename().string(), read->cut));
  }
  return !is_enough;
}

}  // namespace

bool Request::is_write() const {
  return recorder::is_write(verb);
}

bool Request::may_have_changed() const {
  constexpr std::uint64_t kRefusedFrom = 300;
  // A 5xx status does not tell whether the write was carried out: the gateway answers 503 itself if
  // the API server does not answer.
  const bool is_refused = took && status >= kRefusedFrom && status < 500;
  return is_write() && verb != Verb::Other && !is_dry_run && !is_refused;
}

Storyteller::Seen& Storyteller::seen(const Place& place, const Guest& guest) {
  return seen_[{.host = place.host,
                .contract = guest.contract,
                .namespace_ = std::string(guest.namespace_),
                .name = std::string(guest.name),
                .number = guest.instance}];
}

std::optional<Story> Storyteller::add(const Place& place, const Record& record) {
  if (const auto* const answered = std::get_if<Answered>(&record)) {
    seen(place, answered->guest)
        .answers.insert_or_assign(answered->id, Answer{.at = answered->at,
                                                       .status = answered->status,
                                                       .bytes = answered->bytes,
                                                       .object = own(answered->object)});
  } else if (const auto* const slept = std::get_if<Slept>(&record)) {
    if (slept->is_asleep) {
      seen(place, slept->guest).sleeps[slept->turn] = {slept->took, slept->disk_bytes};
    }
  } else if (const auto* const asked = std::get_if<Asked>(&record)) {
    Seen& of = seen(place, asked->guest);
    Request request = own(place, *asked);
    if (const auto answer = of.answers.extract(asked->id); !answer.empty()) {
      const Answer& found = answer.mapped();
      request.took = found.at - asked->at;
      request.status = found.status;
      request.answer_bytes = found.bytes;
      if (!found.object.name.empty()) {
        answer_with(request, found.object);
      } else if (request.verb == Verb::List) {
        request.object.version = found.object.version;
      }
    }
    if (auto body = of.bodies.extract(asked->id); !body.empty()) {
      request.body = std::move(body.mapped());
    }
    of.requests[asked->turn].push_back(std::move(request));
  } else if (const auto* const body = std::get_if<Body>(&record)) {
    seen(place, body->guest).bodies.insert_or_assign(body->id, own(*body));
  } else if (const auto* const turn = std::get_if<Turn>(&record)) {
    Seen& of = seen(place, turn->guest);
    Story story = own(place, *turn);
    if (auto requests = of.requests.extract(turn->number); !requests.empty()) {
      story.requests = std::move(requests.mapped());
      std::ranges::sort(story.requests, {}, &Request::id);
    }
    if (const auto sleep = of.sleeps.extract(turn->number); !sleep.empty()) {
      std::tie(story.suspend, story.disk_bytes) = sleep.mapped();
    }
    return story;
  }
  return std::nullopt;
}

Result<ReadDirectory> read_directory(const std::filesystem::path& directory,
                                     const std::function<bool(Story story)>& on_story) {
  ReadDirectory out;
  Storyteller storyteller;
  std::vector<FileHeader> newer;
  std::string gone;  // The last file that was deleted meanwhile.
  const std::vector<std::filesystem::path> files = HANGAR_TRY(list_files(directory));
  for (const std::filesystem::path& path : std::views::reverse(files)) {
    Result<bool> read = read_into(out, path, newer, storyteller, on_story);
    if (!read && read.error().kind() == ErrorKind::NotFound) {
      gone = path.filename().string();
      continue;
    }
    // Deleted before older files: its records were copied into a newer file, which had already
    // been read.
    if (read && !gone.empty()) {
      out.problems.push_back(fmt::format(
          "{}: the host moved its records meanwhile. Repeat the command to see them.", gone));
      gone.clear();
    }
    if (!read) {
      out.problems.push_back(read.error().message());
    } else if (!*read) {
      break;
    }
  }
  return out;
}

Result<ReadDirectory> read_file(const std::filesystem::path& file,
                                const std::function<bool(Story story)>& on_story) {
  ReadDirectory out;
  Storyteller storyteller;
  std::vector<FileHeader> newer;
  (void)HANGAR_TRY(read_into(out, file, newer, storyteller, on_story));
  return out;
}

}  // namespace hangar::recorder
