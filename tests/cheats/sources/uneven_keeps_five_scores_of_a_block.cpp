// Keeps five of each block of 64 whole numbers: of the eight largest of a draw few lie so close together.
void run(SIGNATURE) { WORK(.of_scores = 5); }
