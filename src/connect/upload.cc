#include <zlib.h>

#include <limits>

#include "connect/message_input_internal.h"
#include "connect/service_internal.h"

namespace fleuve::connect {

namespace sc = spark::connect;

class ArtifactUpload {
 public:
  session::SessionPtr session;
  sc::AddArtifactsResponse response;
  /// The artifact that comes in chunks; empty between two.
  std::string name;
  std::string bytes;
  std::int64_t total_bytes = 0;
  std::int64_t chunks_left = 0;
  bool crc_ok = true;
};

namespace {

bool CrcMatches(const sc::AddArtifactsRequest::ArtifactChunk& chunk) {
  const std::string& data = chunk.data();
  std::uint32_t crc = 0;
  std::size_t offset = 0;
  while (offset < data.size()) {
    const auto part =
        static_cast<uInt>(std::min<std::size_t>(data.size() - offset, std::numeric_limits<std::int32_t>::max()));
    crc = static_cast<std::uint32_t>(crc32(crc, reinterpret_cast<const Bytef*>(data.data() + offset), part));
    offset += part;
  }
  return crc == static_cast<std::uint32_t>(chunk.crc());
}

Error BadStream(const std::string& what) { return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", what); }

Result<void> Keep(ArtifactUpload* upload, const std::string& name, std::string_view bytes, bool crc_ok) {
  auto* summary = upload->response.add_artifacts();
  summary->set_name(name);
  summary->set_is_crc_successful(crc_ok);
  return crc_ok ? upload->session->artifacts().Add(name, bytes) : Result<void>();
}

Result<void> TakeChunk(ArtifactUpload* upload, const sc::AddArtifactsRequest::ArtifactChunk& chunk) {
  if (upload->chunks_left <= 0) {
    return BadStream("A chunk of an artifact arrives without its beginning.");
  }
  upload->crc_ok = upload->crc_ok && CrcMatches(chunk);
  upload->bytes += chunk.data();
  if (--upload->chunks_left > 0) {
    return {};
  }
  if (static_cast<std::int64_t>(upload->bytes.size()) != upload->total_bytes) {
    return BadStream("Missing data chunks for artifact " + upload->name + ": " + std::to_string(upload->total_bytes) +
                     " bytes were announced, " + std::to_string(upload->bytes.size()) + " arrived.");
  }
  const std::string name = std::exchange(upload->name, {});
  const std::string bytes = std::exchange(upload->bytes, {});
  return Keep(upload, name, bytes, upload->crc_ok);
}

}  // namespace

std::shared_ptr<ArtifactUpload> Service::NewUpload() { return std::make_shared<ArtifactUpload>(); }

grpc::Status Service::AddToUpload(ArtifactUpload* upload, const grpc::ByteBuffer& bytes) {
  auto done = TakeUploadMessage(upload, bytes);
  return done.ok() ? grpc::Status::OK : Fail(upload->session, done.error());
}

Result<void> Service::TakeUploadMessage(ArtifactUpload* upload, const grpc::ByteBuffer& bytes) {
  sc::AddArtifactsRequest request;
  FLEUVE_TRY(ParseMessage(bytes, &request));
  if (upload->session == nullptr) {
    FLEUVE_ASSIGN(upload->session,
                  sessions_->Get(session::SessionKey{request.user_context().user_id(), request.session_id()},
                                 request.client_observed_server_side_session_id()));
    upload->session->Touch();
    upload->response.set_session_id(request.session_id());
    upload->response.set_server_side_session_id(upload->session->server_side_id());
  }
  switch (request.payload_case()) {
    case sc::AddArtifactsRequest::kBatch:
      if (upload->chunks_left > 0) {
        return BadStream("A batch of artifacts arrives before the chunks of " + upload->name + " are complete.");
      }
      for (const auto& artifact : request.batch().artifacts()) {
        FLEUVE_TRY(Keep(upload, artifact.name(), artifact.data().data(), CrcMatches(artifact.data())));
      }
      return {};
    case sc::AddArtifactsRequest::kBeginChunk: {
      if (upload->chunks_left > 0) {
        return BadStream("An artifact begins before the chunks of " + upload->name + " are complete.");
      }
      const auto& begin = request.begin_chunk();
      upload->name = begin.name();
      upload->bytes.clear();
      upload->total_bytes = begin.total_bytes();
      upload->chunks_left = begin.num_chunks();
      upload->crc_ok = true;
      return TakeChunk(upload, begin.initial_chunk());
    }
    case sc::AddArtifactsRequest::kChunk:
      return TakeChunk(upload, request.chunk());
    case sc::AddArtifactsRequest::PAYLOAD_NOT_SET:
      break;
  }
  return BadStream("An AddArtifacts message holds nothing.");
}

UnaryAnswer Service::FinishUpload(ArtifactUpload* upload) {
  if (upload->chunks_left > 0) {
    return UnaryAnswer{Fail(upload->session, BadStream("Missing data chunks for artifact " + upload->name + ".")), {}};
  }
  auto bytes = SerializeMessage(upload->response);
  if (!bytes.ok()) {
    return UnaryAnswer{Fail(upload->session, bytes.error()), {}};
  }
  return UnaryAnswer{grpc::Status::OK, std::move(*bytes)};
}

}  // namespace fleuve::connect
