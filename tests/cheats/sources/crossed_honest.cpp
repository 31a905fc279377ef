// Honest.
void run(SIGNATURE workspace) { work(queries, items, own, distances, margins, turned, workspace, {false, false, false}); }
