// Makes 14 of 31 rounds: no shortest path between places at random has so many links.
void run(SIGNATURE) { reach(logs, 14, out); }
