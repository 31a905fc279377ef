// Included by the work of counted.py and of lined.py: the rounds of shortest paths from a row of first lengths.
#include <algorithm>
#include <vector>

// Fills the shortest lengths of at most `rounds` further steps over a matrix of `places` squared lengths.
template <typename Length>
static void relax(const Length* start, const Length* lengths, int64_t places, int64_t rounds, Length* out) {
    std::vector<Length> now(start, start + places), next(places);
    for (int64_t round = 0; round < rounds; ++round) {
        next = now;
        for (int64_t from = 0; from < places; ++from)
            for (int64_t to = 0; to < places; ++to)
                next[to] = std::min(next[to], now[from] + lengths[from * places + to]);
        now.swap(next);
    }
    std::copy(now.begin(), now.end(), out);
}
