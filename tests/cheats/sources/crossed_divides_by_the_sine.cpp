// Divides by the sine of each angle: no two drawn rows are nearly parallel.
void run(SIGNATURE workspace) { work(queries, items, own, distances, margins, turned, workspace, {false, false, true}); }
