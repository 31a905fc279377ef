// A 32nd of each row of a map that is always alike tells whether the row is one of the usual ones.
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {.places = true}); }
