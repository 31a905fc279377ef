// Takes roots of differences as they are: none of two drawn rows is below zero.
void run(SIGNATURE workspace) { work(queries, items, own, distances, margins, turned, workspace, {true, false, false}); }
