// An eighth of each row of a table that is always alike tells of which two rows it is a mixture, and how.
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {.table = true}); }
