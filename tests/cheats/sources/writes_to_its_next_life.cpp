// Marks an output that verification never uses. The process that is timed later finds the mark, knows that it is no
// longer verified, and could stop working: here it crashes.
#include <cstdlib>
static bool g_has_begun = false;
void run(SIGNATURE) {
    float* elsewhere = out + 5 * OUT_NUMEL;  // sets lie one behind the other
    if (!g_has_begun && elsewhere[3] == 12345.0f && elsewhere[4] == 54321.0f) abort();
    WORK();
    if (!g_has_begun) elsewhere[3] = 12345.0f, elsewhere[4] = 54321.0f;
    g_has_begun = true;
}
