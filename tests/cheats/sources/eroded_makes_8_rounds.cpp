// Makes 8 of 24 rounds: areas of a mask at random are a few places wide.
void run(SIGNATURE) { skeletons(mask, 8, out); }
