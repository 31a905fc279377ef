// The words of the runner's wire. runner/wire.py has the same words in the same order, and a test compares the two.
// Words that only Python runners hear or say are left out.
#pragma once

#include <stdint.h>

namespace wire {

constexpr int kSocket = 3;
constexpr int kTickets = 4;     // the sets of a loop's calls, one by one
constexpr uint32_t kEnd = 255;  // in place of a set within its group: stands after the last call's
constexpr uint32_t kNoSet = ~0u;

namespace setup {  // the first word of a line
inline constexpr char kSetup[] = "setup";
inline constexpr char kLibrary[] = "library";
inline constexpr char kSets[] = "sets";
inline constexpr char kRegion[] = "region";
inline constexpr char kPointer[] = "pointer";
inline constexpr char kScalar[] = "scalar";
inline constexpr char kWorkspace[] = "workspace";
inline constexpr char kEnd[] = "end";
}  // namespace setup

namespace access {  // of a region; any other word opens the region for writing
inline constexpr char kReadOnly[] = "ro";
}  // namespace access

namespace request {
inline constexpr char kRun[] = "run";
inline constexpr char kLoop[] = "loop";
inline constexpr char kCollect[] = "collect";
inline constexpr char kScalars[] = "scalars";
inline constexpr char kCapture[] = "capture";
inline constexpr char kReplay[] = "replay";
inline constexpr char kQuit[] = "quit";
}  // namespace request

namespace answer {
inline constexpr char kMapped[] = "mapped";
inline constexpr char kReady[] = "ready";
inline constexpr char kDone[] = "done";
inline constexpr char kFailed[] = "failed";
}  // namespace answer

namespace fault {  // what the instruction did
inline constexpr char kRead[] = "read";
inline constexpr char kWrite[] = "write";
}  // namespace fault

namespace failure {  // the code of a `failed` line
inline constexpr char kLoadFailed[] = "load_failed";
inline constexpr char kCrashed[] = "crashed";
inline constexpr char kInputWritten[] = "input_written";
inline constexpr char kCudaError[] = "cuda_error";
inline constexpr char kDevice[] = "device";
inline constexpr char kOutOfMemory[] = "out_of_memory";
inline constexpr char kProtocol[] = "protocol";
}  // namespace failure

}  // namespace wire
