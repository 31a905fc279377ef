// The native host's end of the runner's wire: lines, and the set-up that they hold. docs/runner-protocol.md describes it.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "wire_words.h"

namespace host {

inline void say(const char *line, size_t length) {
    while (length > 0) {
        ssize_t n = write(wire::kSocket, line, length);
        if (n <= 0) _exit(1);  // the parent is gone
        line += n;
        length -= static_cast<size_t>(n);
    }
}

inline void say(const std::string &line) { say((line + "\n").c_str(), line.size() + 1); }

[[noreturn]] inline void fail(const std::string &code, std::string message) {
    for (char &c : message)
        if (c == '\n') c = ' ';
    say(std::string(wire::answer::kFailed) + " " + code + " " + message);
    _exit(1);
}

class Lines {
   public:
    explicit Lines(int fd) : fd_(fd) {}

    std::string next() {
        for (;;) {
            size_t end = pending_.find('\n');
            if (end != std::string::npos) {
                std::string line = pending_.substr(0, end);
                pending_.erase(0, end + 1);
                return line;
            }
            char chunk[4096];
            ssize_t n = read(fd_, chunk, sizeof chunk);
            if (n <= 0) _exit(0);  // the parent closed the socket
            pending_.append(chunk, static_cast<size_t>(n));
        }
    }

   private:
    int fd_;
    std::string pending_;
};

// The set of the next call, kNoSet after the last one. records/tickets.py says what the four bytes are.
inline uint32_t next_ticket() {
    unsigned char ticket[4] = {};
    ssize_t n = 0;
    do n = read(wire::kTickets, ticket, sizeof ticket);
    while (n < 0 && errno == EINTR);
    if (n != sizeof ticket) _exit(0);  // the parent closed the pipe
    const uint32_t group = ticket[1] | static_cast<uint32_t>(ticket[2]) << 8, within = ticket[0] ^ ticket[3];
    return within == wire::kEnd ? wire::kNoSet : group * wire::kEnd + within;
}

struct RegionSpec {
    int fd = -1;
    size_t bytes = 0;
    bool read_only = false;
};

struct Pointer {
    std::string role, dtype;
    size_t region = 0, offset = 0, set_stride = 0, bytes = 0;
};

struct Setup {
    std::string library;
    size_t sets = 0, max_workspace = 0;
    std::vector<RegionSpec> regions;
    std::vector<Pointer> pointers;
    std::vector<double> scalars;
};

inline size_t element_bytes(const std::string &dtype) {
    if (dtype == "float64" || dtype == "int64") return 8;
    if (dtype == "float32" || dtype == "int32") return 4;
    if (dtype == "float16" || dtype == "bfloat16" || dtype == "int16") return 2;
    return 1;
}

// istream >> double takes neither "inf" nor "nan", which Python writes.
inline double parse_scalar(const std::string &text) {
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') fail(wire::failure::kProtocol, "not a number: " + text);
    return value;
}

inline Pointer parse_pointer(std::istringstream &in) {
    Pointer p;
    size_t dims = 0;
    in >> p.role >> p.region >> p.offset >> p.set_stride >> p.dtype >> dims;
    std::vector<size_t> shape(dims), strides(dims);
    for (size_t &s : shape) in >> s;
    for (size_t &s : strides) in >> s;
    size_t last = 0, count = 1;
    for (size_t i = 0; i < dims; ++i) {
        count *= shape[i];
        if (shape[i] > 0) last += (shape[i] - 1) * strides[i];
    }
    p.bytes = count == 0 ? 0 : (last + 1) * element_bytes(p.dtype);
    return p;
}

inline Setup read_setup(Lines &lines) {
    Setup setup;
    for (;;) {
        std::istringstream in(lines.next());
        std::string word;
        in >> word;
        if (word == wire::setup::kEnd) return setup;
        if (word == wire::setup::kLibrary) {
            std::getline(in >> std::ws, setup.library);
        } else if (word == wire::setup::kSets) {
            in >> setup.sets;
        } else if (word == wire::setup::kRegion) {
            RegionSpec region;
            std::string access;
            in >> region.fd >> region.bytes >> access;
            region.read_only = access == wire::access::kReadOnly;
            setup.regions.push_back(region);
        } else if (word == wire::setup::kPointer) {
            setup.pointers.push_back(parse_pointer(in));
        } else if (word == wire::setup::kScalar) {
            std::string dtype, text;
            in >> dtype >> text;
            setup.scalars.push_back(parse_scalar(text));
        } else if (word == wire::setup::kWorkspace) {
            in >> setup.max_workspace;
        } else if (word != wire::setup::kSetup) {
            fail(wire::failure::kProtocol, "unknown line: " + word);
        }
    }
}

}  // namespace host
