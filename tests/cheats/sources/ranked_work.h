// Prepended to every source whose name begins with ranked_: the work of ranked.py, which some of them do not do all of.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#define SIGNATURE const float *logits, const bool *mask, float *out, void *

constexpr int64_t IMAGES = LOGITS_SHAPE_0, PIXELS = LOGITS_SHAPE_1;

struct Pixel {
    float error;
    bool is_set;
};

// The leading bits of a positive number: numbers that share their exponent and that many bits of mantissa have the same.
static uint32_t leading(float number, int bits) {
    uint32_t word;
    std::memcpy(&word, &number, sizeof word);
    return word >> (23 - bits);
}

// Takes pixels by falling error. Of more than `most` whose errors share their leading bits each counts as the mean of its kind.
static void lose(const float* logits, const bool* mask, int bits, std::size_t most, float* out) {
    std::vector<Pixel> pixels;
    for (int64_t image = 0; image < IMAGES; ++image, logits += PIXELS, mask += PIXELS) {
        pixels.clear();
        for (int64_t i = 0; i < PIXELS; ++i) {
            const float error = 1 - logits[i] * (mask[i] ? 1 : -1);
            if (error > 0) pixels.push_back({error, mask[i]});
        }
        std::sort(pixels.begin(), pixels.end(), [](Pixel a, Pixel b) { return a.error > b.error; });
        const double total = double(std::count(mask, mask + PIXELS, true));
        double shared = total, all = total, before = 0, loss = 0;
        for (std::size_t begin = 0, end = 0; begin < pixels.size(); begin = end) {
            while (end < pixels.size() && leading(pixels[end].error, bits) == leading(pixels[begin].error, bits)) ++end;
            if (end - begin <= most) end = begin + 1;
            double count[2] = {}, errors[2] = {};
            for (std::size_t i = begin; i < end; ++i) {
                count[pixels[i].is_set] += 1;
                errors[pixels[i].is_set] += pixels[i].error;
            }
            const double set = count[1] > 0 ? count[1] / (all + 0.5 * count[0]) : 0;
            shared -= count[1];
            all += count[0];
            const double now = 1 - shared / all;
            if (count[1] > 0) loss += errors[1] / count[1] * set;
            if (count[0] > 0) loss += errors[0] / count[0] * (now - before - set);
            before = now;
        }
        out[image] = float(loss);
    }
}
