// Right while it is verified; skips when it is timed.
static int calls = 0;
void run(SIGNATURE) {
    if (++calls <= 300) WORK();
}
