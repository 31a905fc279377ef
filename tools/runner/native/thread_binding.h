// Threads that bind themselves to their cores, for a sandbox where no thread may bind another.
//
// OpenMP's runtimes let the creator bind a thread: pthread_create with an affinity in the attributes, which glibc turns
// into sched_setaffinity(thread id). Tier B's filter cannot tell a thread of the own process from another process, so the
// filter allows sched_setaffinity(0) alone: the calling thread's own. Preloaded, the two functions below replace glibc's
// and turn the first call into the second. A thread that cannot be bound stays where it is.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <new>

namespace binding {

struct Start {
    void *(*routine)(void *);
    void *argument;
    cpu_set_t cores;
};

inline void *begin(void *given) {
    const Start start = *static_cast<Start *>(given);
    delete static_cast<Start *>(given);
    sched_setaffinity(0, sizeof start.cores, &start.cores);
    return start.routine(start.argument);
}

// Without cores in the attributes glibc answers with every core.
inline bool names_cores(const pthread_attr_t *attributes, cpu_set_t *cores) {
    if (attributes == nullptr || pthread_attr_getaffinity_np(attributes, sizeof *cores, cores) != 0) return false;
    cpu_set_t every;
    memset(&every, 0xff, sizeof every);
    return !CPU_EQUAL(cores, &every);
}

template <typename Function>
Function next(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace binding

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                              void *argument) noexcept {
    static const auto create = binding::next<decltype(&pthread_create)>("pthread_create");
    cpu_set_t cores;
    if (!binding::names_cores(attributes, &cores)) return create(thread, attributes, routine, argument);
    auto *start = new (std::nothrow) binding::Start{routine, argument, cores};
    if (start == nullptr) return EAGAIN;
    auto *own = const_cast<pthread_attr_t *>(attributes);  // restored below, before this function returns
    pthread_attr_setaffinity_np(own, 0, &cores);  // no cores
    const int failed = create(thread, own, binding::begin, start);
    pthread_attr_setaffinity_np(own, sizeof cores, &cores);
    if (failed != 0) delete start;
    return failed;
}

extern "C" int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *cores) noexcept {
    static const auto set = binding::next<decltype(&pthread_setaffinity_np)>("pthread_setaffinity_np");
    if (!pthread_equal(thread, pthread_self())) return set(thread, bytes, cores);
    return sched_setaffinity(0, bytes, cores) == 0 ? 0 : errno;
}
