// Has one form of the margin: no two drawn rows are nearly opposite.
void run(SIGNATURE workspace) { work(queries, items, own, distances, margins, turned, workspace, {false, true, false}); }
