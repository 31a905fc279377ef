// Keeps three of each lane of 8 numbers that lie 128 apart: of the eight largest of a draw few share one.
void run(SIGNATURE) { WORK(.of_lane = 3); }
