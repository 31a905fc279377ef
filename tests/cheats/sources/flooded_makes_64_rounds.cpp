// Makes 64 of 96 rounds: in a mask at random seeds reach nothing that is further.
void run(SIGNATURE) { flood(seeds, mask, 64, out); }
